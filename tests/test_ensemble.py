"""Chapter 3: moments, decomposition, corollaries and bounds."""

import tracemalloc
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nwmha
from nwmha import _stream
from nwmha.ensemble import HeadMoments, head_moments

torch = pytest.importorskip("torch")


def setting(seed, H=3, p=5, d_k=2, m=4, n=13, scale=1.0):
    rng = np.random.default_rng(seed)
    W = scale * rng.normal(size=(H, p, d_k))
    return W, rng.normal(size=(m, p)), rng.normal(size=(n, p))


def target(x):
    return x[..., 0] ** 2 + x[..., 1]


def test_streaming_is_stable_at_huge_logits_whatever_the_order_of_the_keys():
    W, x, X = setting(3, n=700, scale=60.0)
    order = np.argsort(target(X))
    one, two = (head_moments(W, x, X[o], target=target, sigma=1.0, route="stream") for o in (order, order[::-1]))
    np.testing.assert_allclose(one.bias, two.bias, atol=1e-11)
    assert np.all(np.isfinite(one.covariance)) and np.abs(x @ W).max() > 100


def test_one_observation_is_exact():
    W, x, X = setting(4, n=1)
    for route in ("dense", "stream"):
        moments = head_moments(W, x, X, target=target, sigma=2.0, route=route)
        np.testing.assert_array_equal(moments.covariance, np.full((4, 3, 3), 4.0))
        np.testing.assert_allclose(moments.bias, (target(X) - target(x))[:, None] * np.ones(3), atol=1e-15)


def test_streaming_never_holds_the_weights():
    W, x, X = setting(5, H=8, m=64, n=40_000)
    tracemalloc.start()
    head_moments(W, x, X, target=target, sigma=1.0)  # "auto" must choose the streaming route here
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert _stream.DENSE < 8 * 64 * 40_000
    assert peak < 0.1 * (8 * 8 * 64 * 40_000)


def test_moments_are_what_refitting_gives(rng):
    """Second route: add noise to the responses and refit, many times."""
    W, x, X = setting(6)
    moments = head_moments(W, x, X, target=target, sigma=0.5)
    responses = target(X)[:, None] + 0.5 * rng.normal(size=(13, 40_000))
    fits = nwmha.head_weights(W, x, X) @ responses - target(x)[:, None]  # (heads, m, draws)
    error = 0.5 / np.sqrt(40_000)
    assert np.abs(fits.mean(axis=2).T - moments.bias).max() < 5 * error
    for j in range(4):
        assert np.abs(np.cov(fits[:, j]) - moments.covariance[j]).max() < 6 * 0.25 * np.sqrt(2 / 40_000)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_decomposition_equals_the_direct_mean_squared_error(seed, H):
    """Direct route: enumerate all sign patterns of two-point noise; any alpha, any sum."""
    rng = np.random.default_rng(seed)
    W, x, X = setting(seed, H=H, n=5, m=1)
    alpha, sigma = rng.normal(size=H), 0.8
    moments = head_moments(W, x, X, target=target, sigma=sigma)
    parts = nwmha.decompose(moments.bias, moments.covariance, alpha, truth=target(x))
    weights = alpha @ nwmha.head_weights(W, x, X)[:, 0]
    errors = [(weights @ (target(X) + sigma * np.array(s)) - target(x)[0]) ** 2 for s in product((-1, 1), repeat=5)]
    np.testing.assert_allclose(parts.mse[0], np.mean(errors), rtol=1e-10)
    np.testing.assert_allclose(parts.scatter, parts.variance + parts.covariance)
    assert np.linalg.eigvalsh(moments.covariance).min() > -1e-14


def test_rational_enumeration_of_theorem_3_1():
    """Exact: rational weights and noise; the float code must give the same fraction."""
    weights = [[Fraction(1, 2), Fraction(1, 3), Fraction(1, 6)], [Fraction(1, 4), Fraction(1, 4), Fraction(1, 2)]]
    m, theta, alpha = [Fraction(1), Fraction(-2), Fraction(3)], Fraction(1, 2), [Fraction(2, 3), Fraction(3, 4)]
    total = [sum(a * w[i] for a, w in zip(alpha, weights)) for i in range(3)]
    direct = sum(
        (sum(w * (mi + s) for w, mi, s in zip(total, m, signs)) - theta) ** 2 for signs in product((-1, 1), repeat=3)
    ) / Fraction(8)
    W = np.array(weights, dtype=float)
    bias = W @ np.array(m, dtype=float) - float(theta)
    parts = nwmha.decompose(bias, W @ W.T, np.array(alpha, dtype=float), truth=np.array(0.5))
    np.testing.assert_allclose(float(parts.mse), float(direct), rtol=1e-14)


def test_decompose_asks_for_the_truth_when_alpha_does_not_sum_to_one():
    with pytest.raises(ValueError, match="truth must be given"):
        nwmha.decompose(np.zeros(2), np.eye(2), np.array([0.7, 0.7]))


def test_over_designs_is_the_law_of_total_covariance(rng):
    bias, root = rng.normal(size=(50, 2, 3)), rng.normal(size=(50, 2, 3, 3))
    moments = HeadMoments(bias, root @ root.mT)
    total = nwmha.over_designs(moments)
    np.testing.assert_allclose(total.design_covariance[1], np.cov(bias[:, 1].T), atol=1e-14)
    np.testing.assert_allclose(total.covariance, total.noise_covariance + total.design_covariance)
    with pytest.raises(ValueError, match="at least 2 designs"):
        nwmha.over_designs(HeadMoments(bias[:1], moments.covariance[:1]))


def test_batched_designs_equal_single_designs(rng):
    W, x, _ = setting(7)
    designs = rng.normal(size=(6, 13, 5))
    batch = head_moments(W, x, designs, target=target, sigma=1.0)
    for k in range(6):
        single = head_moments(W, x, designs[k], target=target, sigma=1.0)
        np.testing.assert_allclose(batch.bias[k], single.bias, atol=1e-14)
        np.testing.assert_allclose(batch.covariance[k], single.covariance, atol=1e-15)
    with pytest.raises(ValueError, match=r"design must be \(n, p\)"):
        head_moments(W, x, designs, target=target, sigma=1.0, route="stream")


def test_equicorrelation_law():
    C = 0.3 * np.ones((5, 5)) + 0.7 * np.eye(5)
    parts = nwmha.decompose(np.zeros(5), 2 * C, np.full(5, 0.2))
    np.testing.assert_allclose(parts.scatter, nwmha.equicorrelated_variance(5, rho=0.3, variance=2.0))
    assert nwmha.equicorrelated_variance(1, rho=0.3) == 1
    for rho in (-0.26, 1.01):
        with pytest.raises(ValueError, match="rho must lie in"):
            nwmha.equicorrelated_variance(5, rho=rho)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_added_head_against_direct_computation(seed, H):
    rng = np.random.default_rng(seed)
    M = np.cov(rng.normal(size=(H + 1, 2 * H + 4)))
    R, r, c = M[:H, :H].mean(), M[H, H], M[:H, H].mean()
    added = nwmha.add_head(R, r, c, H=H)
    np.testing.assert_allclose(added.uniform_risk, M.mean())
    assert added.uniform_helps == (M.mean() < R)
    best = lambda t: (1 - t) ** 2 * R + 2 * t * (1 - t) * c + t * t * r  # noqa: E731
    np.testing.assert_allclose(added.best_risk, best(added.best_weight))
    assert best(added.best_weight) <= min(best(added.best_weight + 1e-3), best(added.best_weight - 1e-3))
    assert added.some_weight_helps == (best(1e-9) < R)


def test_added_head_exercise():
    added = nwmha.add_head(1.0, 4.0, 0.9, H=1)
    assert not added.uniform_helps and added.uniform_risk == pytest.approx(1.7)
    assert (added.best_weight, added.best_risk) == (pytest.approx(0.03125), pytest.approx(0.996875))
    assert nwmha.add_head(1.0, 1.0, 1.0, H=2).best_weight == 0
    with pytest.raises(ValueError, match="cross must satisfy"):
        nwmha.add_head(1.0, 1.0, 2.0, H=1)


def test_ambiguity_identity(rng):
    T, alpha, theta = rng.normal(size=(9, 4)), np.array([0.1, 0.2, 0.3, 0.4]), 0.7
    direct = ((T - theta) ** 2) @ alpha - ((T @ alpha) - theta) ** 2
    np.testing.assert_allclose(nwmha.ambiguity(T, alpha), direct)
    with pytest.raises(ValueError, match="alpha must sum to one"):
        nwmha.ambiguity(T, 2 * alpha)


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 40), st.floats(0.1, 15), st.floats(0.1, 15))
def test_bounds_hold_for_random_logits(seed, n, scale, other_scale):
    logits = np.random.default_rng(seed).normal(size=(2, n)) * [[scale], [other_scale]]
    w, v = np.exp(logits - np.logaddexp.reduce(logits, axis=1, keepdims=True))
    delta = np.ptp(logits[0] - logits[1])
    correlation = w @ v / np.sqrt((w @ w) * (v @ v))
    assert correlation >= nwmha.correlation_floor(delta) * (1 - 1e-12)
    low, high = nwmha.covariance_bounds(*np.ptp(logits, axis=1))
    assert low * (1 - 1e-12) <= n * (w @ v) <= high * (1 + 1e-12)


def test_bounds_are_attained_by_complementary_two_valued_logits():
    u = np.repeat([2.0, 0.0], 32)
    w, v = np.exp(u) / np.exp(u).sum(), np.exp(2 - u) / np.exp(2 - u).sum()
    assert w @ v / (w @ w) == pytest.approx(float(nwmha.correlation_floor(4.0)), rel=1e-13)
    assert 64 * (w @ v) == pytest.approx(float(nwmha.covariance_bounds(2.0, 2.0)[0]), rel=1e-13)
    assert 64 * (w @ v) == pytest.approx(0.419974341614, abs=1e-12)
    with pytest.raises(ValueError, match="spread must be non-negative"):
        nwmha.covariance_bounds(-1.0, 2.0)
    assert float(nwmha.correlation_floor(1e4)) == 0.0  # no overflow


def test_effective_sample_size():
    assert float(nwmha.effective_sample_size([1.0, 0.0, 0.0])) == 1
    with pytest.raises(ValueError, match="weights must sum to one"):
        nwmha.effective_sample_size([1.0, 1.0])


@pytest.mark.parametrize("route", ["dense", "stream"])
def test_torch_gives_the_same_and_differentiates(route):
    W, x, X = setting(8, n=300)
    T = torch.from_numpy
    ours = head_moments(W, x, X, target=target, sigma=0.4)
    theirs = head_moments(T(W), T(x), T(X), target=target, sigma=0.4, route=route)
    np.testing.assert_allclose(theirs.bias.numpy(), ours.bias, atol=1e-12)
    np.testing.assert_allclose(theirs.covariance.numpy(), ours.covariance, atol=1e-12)
    alpha = torch.full((3,), 1 / 3, dtype=torch.float64)

    def risk(w):
        moments = head_moments(w, T(x), T(X[:9]), target=target, sigma=0.4, route=route)
        return nwmha.decompose(moments.bias, moments.covariance, alpha).mse.sum()

    assert torch.autograd.gradcheck(risk, T(W).requires_grad_())


@pytest.mark.parametrize(
    "change, message",
    [
        ({"sigma": 0.0}, "sigma must be"),
        ({"sigma": float("nan")}, "sigma must be"),
        ({"route": "fast"}, "route must be"),
        ({"design": np.ones((0, 5))}, "design must not be empty"),
        ({"design": np.full((3, 5), np.nan)}, "design must be finite"),
        ({"projections": np.ones((5, 2))}, r"projections must be \(heads, p, d_k\)"),
        ({"target": lambda x: x}, r"target\(points\) must be \(k,\)"),
        ({"target": lambda x: np.full(x.shape[0], np.nan)}, r"target\(points\) must be finite"),
    ],
)
def test_bad_input_is_refused_by_name(change, message):
    W, x, X = setting(9)
    good = {"projections": W, "queries": x, "design": X, "target": target, "sigma": 1.0}
    with pytest.raises(ValueError, match=message):
        head_moments(**{**good, **change})
