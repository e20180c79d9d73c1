"""The Gaussian-design model: quadrature against simulation, closed forms against determinants, ranges of validity."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from nwmha import families, gaussian
from nwmha.diversity import diversity_index, principal_cosines


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 4), st.integers(0, 4), st.floats(0.05, 0.7))
def test_the_two_forms_of_the_limit_agree(seed, d_k, extra, beta):
    W = families.haar_heads(3, d_k + extra, d_k, rng=np.random.default_rng(seed))
    matrix = gaussian.covariance_limit_matrix(W, beta=beta)
    pairs = gaussian.covariance_limit(principal_cosines(W[:, None], W[None]), beta=beta)
    np.testing.assert_allclose(matrix, pairs, rtol=1e-8)
    np.testing.assert_allclose(np.diagonal(matrix), gaussian.variance_limit(d_k, beta=beta), rtol=1e-10)


def test_limit_in_torch_has_the_gradient_of_a_difference_quotient(rng):
    import torch

    W = torch.tensor(families.haar_heads(2, 6, 3, rng=rng), requires_grad=True)
    value = gaussian.covariance_limit_matrix(W, beta=0.5)[0, 1]
    value.backward()
    # Along the geodesic on which the second head stays orthonormal.
    skew = rng.normal(size=(6, 6))
    skew = torch.tensor(skew - skew.T)
    step = 1e-5
    ends = []
    for sign in (1, -1):
        moved = W.detach().clone()
        moved[1] = torch.matrix_exp(sign * step * skew) @ moved[1]
        ends.append(float(gaussian.covariance_limit_matrix(moved, beta=0.5)[0, 1]))
    slope = float((W.grad[1] * (skew @ W[1].detach())).sum())
    assert (ends[0] - ends[1]) / (2 * step) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize(
    "n, pair, single",
    [(64, 1.595760059, 2.4834713), (512, 1.641123435, 2.6801113), (4096, 1.647750035, 2.7132632)],
)
def test_reference_values(n, pair, single):
    assert gaussian.pair_covariance(0.5, 1, 0.7**0.5, n) == pytest.approx(pair, abs=2e-9)
    assert gaussian.single_variance(1, n) == pytest.approx(single, abs=6e-8)


def test_caps_of_the_theory():
    caps = {3: 5.196, 4: 4, 6: 3.375, 8: 3.1605, 16: 2.9103, 32: 2.8084, 64: 2.7620}
    for d_k, cap in caps.items():
        assert gaussian.variance_limit(d_k, beta=d_k**-0.5) == pytest.approx(cap, abs=6e-5 if d_k > 3 else 2e-4)


@pytest.mark.parametrize("s, other, rho, n", [(1, 0.8, 0.6, 8), (2.5, 1, -0.5, 32), (0.3, 3, 0.9, 4)])
def test_quadrature_agrees_with_simulated_softmax_weights(s, other, rho, n, rng):
    z = rng.normal(size=(2, 40_000, n))
    logits = np.stack([s * z[0], other * (rho * z[0] + (1 - rho**2) ** 0.5 * z[1])])
    w, v = softmax(logits, axis=-1)
    for weights, value in (
        (w * v, gaussian.pair_covariance(rho * s * other, s, other, n)),
        (w * w, gaussian.single_variance(s, n)),
    ):
        sample = n * weights.sum(axis=-1)
        assert abs(sample.mean() - value) < 4.5 * sample.std() / 200


def test_quadrature_at_its_edges():
    assert gaussian.single_variance([0.0, 0.5, 3.0], 1) == pytest.approx(1, abs=1e-12)
    assert gaussian.single_variance(0.0, 50) == pytest.approx(1, abs=1e-12)
    assert gaussian.pair_covariance(0, 2, 1, 8) == pytest.approx(1, abs=1e-11)  # uncorrelated logits
    assert gaussian.pair_covariance(9, 3, 3, 512) == pytest.approx(gaussian.single_variance(3, 512), rel=1e-9)
    assert gaussian.bias_factor(1.0, 1) == pytest.approx(0, abs=1e-12)  # one point: no trace of the query
    assert gaussian.pair_covariance(0.7, 1, 1, 10**7) == pytest.approx(np.exp(0.7), rel=1e-5)


@pytest.mark.parametrize(
    "d_k, n, variance, slope",
    [(8, 16, 2.114243, 0.770543), (8, 1024, 3.051250, 0.993253), (4, 64, 2.666409, 0.899864)],
)
def test_integrated_ends(d_k, n, variance, slope):
    found = gaussian.integrated_ends(d_k, n, beta=d_k**-0.5)
    assert found == pytest.approx((variance, slope), abs=1e-6)
    assert found[0] < gaussian.variance_limit(d_k, beta=d_k**-0.5)


def test_reduction_factor_lies_below_the_variance():
    factors = [gaussian.reduction_factor(3.1605, H) for H in (1, 2, 4, 8, 10**6)]
    assert factors[:4] == pytest.approx([1, 1.5193, 2.0521, 2.4885], abs=1e-4)
    assert sorted(factors) == factors and factors[-1] < 3.1605


def test_risk_limit_is_the_distance_to_the_identity(rng):
    W = families.haar_heads(3, 7, 2, rng=rng)
    mean = np.mean(W @ W.mT, axis=0)
    direct = np.sum((0.4 * mean - np.eye(7)) ** 2)
    assert gaussian.linear_risk_limit(W, beta=0.4) == pytest.approx(direct, rel=1e-12)
    hdi = diversity_index(W)
    assert 7 - 2 * 0.4 * 2 + 0.16 * 2 * (1 / 3 + 2 / 3 * (1 - hdi)) == pytest.approx(direct, rel=1e-12)


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: gaussian.variance_limit(2, beta=2**-0.5), "2 beta"),
        (lambda: gaussian.covariance_limit(np.ones(1), beta=1.0), "2 beta"),
        (lambda: gaussian.covariance_limit(np.array([1.1]), beta=0.5), "cosines"),
        (lambda: gaussian.covariance_limit_matrix(np.ones((2, 3, 1)), beta=0.5), "orthonormal"),
        (lambda: gaussian.pair_covariance(2.0, 1, 1, 8), "r must lie"),
        (lambda: gaussian.single_variance(-1.0, 8), "s must not"),
        (lambda: gaussian.single_variance(np.nan, 8), "s must be finite"),
        (lambda: gaussian.integrated_ends(4, 1, beta=0.5), "n must be"),
        (lambda: gaussian.reduction_factor(0.5, 2), "variance"),
        (lambda: gaussian.linear_risk_limit(np.ones((2, 3, 2)), beta=0.5), "rank"),
    ],
)
def test_out_of_range_is_refused(call, word):
    with pytest.raises(ValueError, match=word):
        call()
