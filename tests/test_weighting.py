"""Weights: optimality against perturbation and other solvers, thresholds against roots, reference values, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from nwmha import weighting as wt

GOLDEN = (1 + 5**0.5) / 2


def moments(seed, H, shift=0.0):
    rng = np.random.default_rng(seed)
    return np.cov(rng.normal(size=(H, 3 * H + 3))) + shift


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 7), st.floats(0, 3))
def test_optimal_weights_cannot_be_improved(seed, H, shift):
    M = moments(seed, H, shift)
    rng = np.random.default_rng(seed)
    free, bound = wt.optimal(M), wt.optimal_nonnegative(M)
    assert free.sum() == pytest.approx(1) and bound.sum() == pytest.approx(1) and np.all(bound >= 0)
    assert wt.error(free, M) == pytest.approx(1 / np.linalg.inv(M).sum())
    for _ in range(20):
        step = rng.normal(size=H) * 0.1
        assert wt.error(free, M) <= wt.error(free + step - step.mean(), M) + 1e-12
        other = rng.dirichlet(np.ones(H))
        assert wt.error(bound, M) <= wt.error(other, M) + 1e-12
    slack = M @ bound - wt.error(bound, M)
    assert np.all(slack > -1e-9) and np.all(np.abs(slack[bound > 1e-9]) < 1e-9)


def test_nonnegative_weights_agree_with_a_general_solver():
    M = moments(3, 6, 2.0)
    found = minimize(lambda a: a @ M @ a, np.full(6, 1 / 6), method="SLSQP", bounds=[(0, 1)] * 6, tol=1e-14,
                     constraints={"type": "eq", "fun": lambda a: a.sum() - 1})  # fmt: skip
    assert wt.error(wt.optimal_nonnegative(M), M) == pytest.approx(found.fun, abs=1e-8)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 40), st.floats(0.05, 0.97))
def test_threshold_separates_and_obeys_the_square_root_rule(H, r):
    alpha = wt.geometric(H, r)
    g = wt.threshold(alpha)
    assert 1 < g < r**-0.5
    for ratio, better in ((g * 1.001, True), (1 + 0.99 * (g - 1), False)):
        V = ratio ** np.arange(H)
        assert (wt.error(alpha, V) < wt.error(wt.uniform(H), V)) == better


@pytest.mark.parametrize(
    "H, r, value", [(4, 0.9, 1.0540), (4, 0.5, 1.3712), (8, 0.618, 1.2284), (16, 0.3, 1.2526), (64, 0.5, 1.0758)]
)
def test_thresholds_of_the_theory(H, r, value):
    assert wt.threshold(wt.geometric(H, r)) == pytest.approx(value, abs=6e-5)


def test_fibonacci_weights():
    assert wt.threshold(wt.fibonacci(3)) == pytest.approx(1.2627, abs=5e-5)
    assert wt.threshold(wt.fibonacci(8)) == pytest.approx(1.2268, abs=5e-5)
    alpha = wt.fibonacci(30)
    assert alpha[0] / alpha[1] == pytest.approx(GOLDEN, abs=1e-9) and alpha[-1] == alpha[-2]
    assert 1 / np.sum(alpha**2) == pytest.approx(GOLDEN**3, abs=1e-4)


def test_geometric_weights_are_optimal_for_geometric_variances():
    V = 2 * 1.7 ** np.arange(9)
    np.testing.assert_allclose(wt.geometric(9, 1 / 1.7), wt.inverse_variance(V), rtol=1e-12)
    np.testing.assert_allclose(wt.optimal(np.diag(V)), wt.inverse_variance(V), rtol=1e-12)


def test_excess_not_variance_for_a_common_floor():
    v = 1 + 0.05 * 2.0 ** np.arange(8)
    M = np.ones((8, 8)) + np.diag(v - 1)
    np.testing.assert_allclose(wt.optimal(M), wt.inverse_excess(v), rtol=1e-9)
    assert wt.error(wt.inverse_variance(v), M) > wt.error(wt.inverse_excess(v), M)


def test_plug_in_and_break_even():
    V = GOLDEN ** np.arange(8)
    best, fixed = wt.error(wt.inverse_variance(V), V), wt.error(wt.uniform(8), V)
    assert fixed / best == pytest.approx(2.978, abs=5e-4)
    for ratio, size in ((0, 11.5), (10, 46.9), (100, 365)):
        assert wt.break_even_sample(fixed, best, 8, noise=ratio * best) == pytest.approx(size, rel=6e-3)
    assert wt.plug_in_error(1.0, 10, 8) == pytest.approx(4.5)
    assert wt.plug_in_error(1.0, 8, 8) == float("inf")


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: wt.geometric(3, 0.0), "r must lie"),
        (lambda: wt.geometric(0, 0.5), "H must be"),
        (lambda: wt.inverse_variance(np.array([1.0, 0.0])), "variances must be above 0"),
        (lambda: wt.inverse_excess(np.array([1.0, 2.0])), "above the floor"),
        (lambda: wt.optimal(np.array([[1.0, 2.0], [2.0, 1.0]])), "positive definite"),
        (lambda: wt.optimal(np.ones((2, 3))), "symmetric"),
        (lambda: wt.threshold(np.array([0.5, 0.5])), "alpha must decrease"),
        (lambda: wt.threshold(np.array([0.2, 0.8])), "alpha must decrease"),
        (lambda: wt.plug_in_error(1.0, 5, 8), "N must be"),
        (lambda: wt.break_even_sample(1.0, 1.0, 4), "fixed must exceed"),
        (lambda: wt.break_even_order(2.0, 1.0, 3.0), "errors must satisfy"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
