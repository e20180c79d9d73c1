"""The law of averaged agents, its estimators and the colony's closed forms against independent routes."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

import nwmha
from nwmha import agents, colony, problems


def gaussian_agents(J, K, m, *, bias, shared, private, rng):
    return bias + shared**0.5 * rng.normal(size=(J, 1, m)) + private**0.5 * rng.normal(size=(J, K, m))


def test_split_recovers_the_three_numbers(rng):
    T = gaussian_agents(20_000, 5, 2, bias=0.7, shared=0.3, private=2.0, rng=rng)
    part = agents.split(T, np.zeros(2))
    assert np.allclose([part.bias_squared, part.shared, part.private], [0.49, 0.3, 2.0], atol=0.02)
    assert part.rho == pytest.approx(0.3 / 2.3, abs=0.01)
    assert part.risk(np.inf) == pytest.approx(0.79, abs=0.02)


def test_risks_agree_with_split_and_with_brute_force(rng):
    T = gaussian_agents(5000, 8, 1, bias=0.5, shared=0.2, private=1.0, rng=rng)
    part = agents.split(T, np.zeros(1))
    for H in (1, 3, 8, np.inf):
        assert agents.risks(T, np.zeros(1), H).mean() == pytest.approx(part.risk(H), abs=2e-3)
    assert np.allclose(agents.risks(T, np.zeros(1), 8), T.mean(axis=(1, 2)) ** 2)
    single = (T[:, 0] ** 2).mean()
    assert agents.risks(T, np.zeros(1), 1).mean() == pytest.approx(single, abs=0.1)


def test_surplus_by_the_definition(rng):
    A, B = rng.normal(size=(2, 3, 4, 2))
    centre = np.concatenate([A, B], axis=1).mean(axis=(0, 1))
    A0, B0 = A - centre, B - centre
    for H in (1, 3):
        square = (A0**2).mean(axis=1)
        product = sum(A0[:, i] * A0[:, j] for i in range(4) for j in range(4) if i != j) / 12
        wanted = B0[:, :H].mean(axis=1) ** 2 - product - (square - product) / H
        assert np.allclose(agents.surplus(A, B, H), wanted.mean(axis=1))


def test_surplus_vanishes_for_exchangeable_agents_only(rng):
    T = gaussian_agents(4000, 8, 1, bias=0.0, shared=0.3, private=1.0, rng=rng)
    z = lambda d: d.mean() / d.std() * len(d) ** 0.5  # noqa: E731
    assert abs(z(agents.surplus(T[:, :4], T[:, 4:], 4))) < 4
    assert abs(z(agents.surplus(T[:, :4], 2 * T[:, 4:], 4))) > 10


def test_shared_groups_cannot_fail(rng):
    T = rng.normal(size=(30, 6, 1)) * np.arange(1, 7)[None, :, None]  # not exchangeable at all
    assert agents.collapsed(T, T, 6) == pytest.approx(1 / 6, abs=1e-12)
    assert abs(agents.surplus(T, T, 6).mean()) < 1e-12


def test_attention_agents_are_heads(rng):
    W, X, y = rng.normal(size=(2, 3, 4, 2)), rng.normal(size=(2, 7, 4)), rng.normal(size=(2, 7))
    x = rng.normal(size=(5, 4))
    found = agents.attention_agents(W, X, y, x, inverse_temperature=0.3)
    weights = nwmha.head_weights(W[1], x, X[1], inverse_temperature=0.3)
    assert np.allclose(found[1], weights @ y[1])


def test_tree_agents_average_to_the_forest(rng):
    X, y, x = rng.normal(size=(2, 30, 3)), rng.normal(size=(2, 30)), rng.normal(size=(4, 3))
    model = RandomForestRegressor(5)
    found = agents.tree_agents(model, X, y, x, rng=np.random.default_rng(3))
    first = RandomForestRegressor(5, random_state=int(np.random.default_rng(3).integers(2**31))).fit(X[0], y[0])
    assert np.allclose(found[0].mean(axis=0), first.predict(x))
    assert not hasattr(model, "estimators_")


@pytest.mark.parametrize("p, d", [(2, 1), (5, 2), (6, 6)])
def test_variance_over_a_random_subspace(p, d, rng):
    a, x = rng.normal(size=(2, p))
    W = nwmha.haar_heads(100_000, p, d, rng=rng)
    values = ((W.mT @ a) * (W.mT @ x)).sum(axis=1)
    assert values.mean() == pytest.approx(d / p * (a @ x), abs=0.03)
    assert values.var() == pytest.approx(agents.haar_agent_variance(a, x, d), rel=0.03, abs=1e-12)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: agents.split(np.ones((1, 3, 1)), np.ones(1)), "estimates must hold at least 2"),
        (lambda: agents.split(np.ones((3, 3, 1)), np.ones(2)), r"truth must be \(1,\)"),
        (lambda: agents.surplus(np.ones((2, 3, 1)), np.ones((3, 3, 1)), 1), r"second must be \(2"),
        (lambda: agents.haar_agent_variance(np.ones(3), np.ones(3), 4), "d_k must not exceed p"),
        (lambda: colony.assessments(2, 2, quality=1, shared=0, k=1, rng=None), "shared must"),
        (lambda: colony.vote_correlation(0.0, 1.0), "rho must"),
        (lambda: colony.quorum_probability(5, 3, 0.1, shared=-1, private=1), "shared must"),
        (lambda: colony.recruited_moments(0, quality=1, shared=1, k=1), "H must"),
    ],
)
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_recruitment_table():
    """Reference values for q = 1, tau^2 = 0.05, k = 4."""
    found = [colony.recruited_moments(H, quality=1.0, shared=0.05, k=4.0) for H in (2, 4, 8, 16, 64)]
    errors = [square - 2 * mean + 1 for mean, square in found]
    assert np.allclose(errors, [0.2573232, 0.2128483, 0.1816399, 0.1626135, 0.1464341], atol=1e-7)
    assert np.allclose([m for m, _ in found], [1.111111, 1.176471, 1.212121, 1.230769, 1.245136], atol=1e-6)


def test_recruitment_against_simulation(rng):
    T = colony.assessments(200_000, 3, quality=2.0, shared=0.2, k=1.5, rng=rng)[..., 0]
    R = (T**2).sum(axis=1) / T.sum(axis=1)
    mean, square = colony.recruited_moments(3, quality=2.0, shared=0.2, k=1.5)
    assert R.mean() == pytest.approx(mean, rel=0.01) and (R**2).mean() == pytest.approx(square, rel=0.03)


def test_assessments_have_the_stated_variances(rng):
    part = agents.split(colony.assessments(50_000, 4, quality=2.0, shared=0.1, k=5.0, rng=rng), np.full(1, 2.0))
    assert part.shared == pytest.approx(0.4, rel=0.05) and part.private == pytest.approx(4 * 1.1 / 5, rel=0.03)


def test_votes_table():
    """Reference values at F = 0.2, W = 0.8, delta = 0.3."""
    assert np.allclose(
        colony.vote_correlation(np.array([0, 0.5, 1, 2]), 0.2), [0.128188, 0.119618, 0.096622, 0.038333], atol=1e-6
    )
    assert colony.vote_correlation(0.0, 0.2) == pytest.approx(2 / np.pi * np.arcsin(0.2))
    assert colony.quorum_probability(80, 40, -0.5, shared=0.2, private=0.8) == pytest.approx(0.1476, abs=5e-5)
    majority = [colony.quorum_probability(H, (H + 1) // 2, 0.3, shared=0.2, private=0.8) for H in (5, 17, 65, 129)]
    assert np.allclose(majority, [0.67662, 0.71744, 0.73916, 0.74380], atol=1e-5)
    mean_rule = colony.mean_rule_accuracy(np.array([5, 17, 65, 129, np.inf]), 0.3, shared=0.2, private=0.8)
    assert np.allclose(mean_rule, [0.69146, 0.72693, 0.74250, 0.74558, 0.74883], atol=1e-5)
    jury = [colony.quorum_probability(H, (H + 1) // 2, 0.3, shared=0.0, private=1.0) for H in (5, 17, 65, 129)]
    assert np.allclose(jury, [0.71302, 0.84157, 0.97357, 0.99676], atol=1e-5)


def test_friedman_is_the_library_function():
    from sklearn.datasets import make_friedman1

    X, y = make_friedman1(50, n_features=10, noise=0.0, random_state=0)
    assert np.allclose(problems.friedman(sigma=1.0).target(X), y)
