"""The budget law: roots against direct minimisation, reference values of the Gaussian world, constants, refusals."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

from nwmha import allocation as al
from nwmha import gaussian


@settings(max_examples=60, deadline=None)
@given(st.floats(0.2, 6), st.floats(0.5, 4), st.floats(0, 1), st.floats(3, 20), st.floats(1, 12))
def test_power_optimum_minimises_the_bound(q, r, rho, log_n, log_D):
    found = al.power_optimum(log_n, q=q, r=r, rho=rho, log_D=log_D)
    bound = lambda t: np.exp(-r * t) + np.exp(q * t - log_n) * (rho + (1 - rho) * np.exp(t - log_D))  # noqa: E731
    direct = minimize_scalar(bound, bounds=(found - 4, found + 4), method="bounded", options={"xatol": 1e-12}).x
    assert found == pytest.approx(direct, abs=1e-5)


def test_power_optimum_in_closed_form():
    for d in (1, 2, 4, 8):
        for log_n in (np.log(1e3), np.log(1e30)):
            floor = al.power_optimum(log_n, q=d / 2, rho=1.0, log_D=0.0)
            assert floor == pytest.approx((np.log(4 / d) + log_n) / (d / 2 + 2), abs=1e-9)
            free = al.power_optimum(log_n, q=d / 2, rho=0.0, log_D=7.0)
            assert free == pytest.approx((np.log(2 / (d / 2 + 1)) + log_n + 7) / (d / 2 + 3), abs=1e-9)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 2.5])
def test_lambert_form_solves_the_equation(gamma):
    for log_n in (5.0, 300.0, 1e6):
        k = al.exponential_optimum(log_n, gamma=gamma, c=0.7, rho=0.4)
        left = np.log(0.4 * 0.7 * gamma) + (2 + gamma) * np.log(k) + 0.7 * k**gamma
        assert left == pytest.approx(np.log(2) + log_n, rel=1e-12)


def test_best_divisor_is_the_best_and_next_to_the_root():
    rng = np.random.default_rng(0)
    for D in (12, 97, 720):
        log_n = rng.uniform(2, 18)
        root = np.exp(al.power_optimum(log_n, q=0.5, rho=0.3, log_D=np.log(D)))
        risk = lambda k, D=D, log_n=log_n: k**-2.0 + np.exp(-log_n) * k**0.5 * (0.3 + 0.7 * k / D)  # noqa: E731
        best = al.best_divisor(D, risk)
        assert risk(best) == min(risk(k) for k in range(1, D + 1) if D % k == 0)
        below = max([k for k in al.divisors(D) if k <= root], default=1)
        above = min([k for k in al.divisors(D) if k >= root], default=D)
        assert best in (below, above)


def test_floor_constant_is_the_value_of_epanechnikovs_kernel():
    """E|w|^2 n f (second moment)^(d/2) for w proportional to 1 - |u|^2, by integration over the radius."""
    for d in (1, 2, 3, 5):
        shell = lambda power, a, d=d: quad(lambda t: t ** (d - 1 + a) * (1 - t**2) ** power, 0, 1)[0]  # noqa: E731
        ball = d * np.pi ** (d / 2) / float(math.gamma(d / 2 + 1))
        second = shell(1, 2) / shell(1, 0)
        value = shell(2, 0) / (ball * shell(1, 0) ** 2) * second ** (d / 2)
        assert al.floor_constant(d) == pytest.approx(value, rel=1e-9)


@pytest.mark.parametrize("n, k", [(10**2, 20), (10**3, 36), (10**6, 88), (10**30, 527)])
def test_optima_of_the_gaussian_world(n, k):
    ks = np.arange(1, 700)
    curve = al.Participation(n, 17.0, points=100)
    assert ks[np.argmax(al.gaussian_gain(ks, curve, beta=0.5, lam=1.0))] == k


def test_random_energy_limit():
    n = 10**100
    for b in (1.5, 2.0, 3.0):
        s = b * np.sqrt(2 * np.log(float(n)))
        assert gaussian.single_variance(s, n) / n == pytest.approx(1 - 1 / b, abs=0.01)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: al.divisors(0), "D must be"),
        (lambda: al.power_optimum(1.0, q=0.0, rho=0.5, log_D=1.0), "q must be"),
        (lambda: al.power_optimum(1.0, q=1.0, rho=1.5, log_D=1.0), "rho must lie"),
        (lambda: al.exponential_optimum(1.0, gamma=-1.0), "gamma must be"),
        (lambda: al.floor_constant(0), "d must be"),
        (lambda: al.Participation(1, 3.0), "n must be"),
        (lambda: al.Participation(10, 3.0, points=20)(4.0), "s must lie"),
        (lambda: al.gaussian_risk(np.array([2]), al.Participation(10, 3.0, points=20), D=8, p=4, beta=0.1, lam=1.0),
         "D must not exceed p"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
