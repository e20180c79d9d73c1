"""Regression problems: a design law, a target and a noise level. Y = m(X) + sigma * standard Gaussian noise."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from nwmha import _check


@dataclass(frozen=True)
class Problem:
    """A regression problem in p dimensions.

    ``target`` maps points ``(k, p)`` to values ``(k,)``; ``sigma`` is the noise standard deviation, in the
    units of the response; ``law`` is the law of the design: ``"gaussian"``, N(0, I_p), or ``"uniform"`` on
    the unit cube. Bad sizes raise ``ValueError``.

    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> problem = Problem(2, lambda x: x[:, 0], 0.1)
    >>> X = problem.design(5, rng)
    >>> X.shape, problem.respond(X, rng).shape
    ((5, 2), (5,))
    """

    p: int
    target: Callable
    sigma: float
    law: Literal["gaussian", "uniform"] = "gaussian"

    def __post_init__(self):
        _check.at_least("p", self.p, 1)
        _check.positive("sigma", self.sigma)
        if self.law not in ("gaussian", "uniform"):
            raise ValueError(f"law must be 'gaussian' or 'uniform', got {self.law!r}")

    def design(self, n, rng):
        """Draw n independent points, ``(n, p)``."""
        size = (_check.at_least("n", n, 1), self.p)
        return rng.normal(size=size) if self.law == "gaussian" else rng.uniform(size=size)

    def respond(self, design, rng):
        """Draw one response per design point, ``(n,)``."""
        design = _check.array("design", design, ("n", self.p))
        return self.target(design) + self.sigma * rng.normal(size=design.shape[0])


def linear_plus_sine(direction, *, sigma):
    """Gaussian design, m(x) = <direction, x> + sin(2 x_1) / 2; ``direction (p,)`` (chapter 3).

    >>> import numpy as np
    >>> linear_plus_sine(np.array([1.0, 0.0]), sigma=1.0).target(np.array([[0.0, 3.0]]))
    array([0.])
    """
    direction = _check.array("direction", direction, ("p",))
    return Problem(direction.shape[0], lambda x: x @ direction + np.sin(2 * x[..., 0]) / 2, sigma)


def wave(*, sigma):
    """One covariate, uniform on [0, 1]: a slow half wave that turns into a fast one (chapter 1).

    m(x) = sin(2 pi x^2) + sin(6 pi x^2) / 2, so the right bandwidth differs from place to place.

    >>> import numpy as np
    >>> wave(sigma=0.3).target(np.array([[0.0]]))
    array([0.])
    """

    def target(x):
        phase = 2 * np.pi * x[..., 0] ** 2
        return np.sin(phase) + np.sin(3 * phase) / 2

    return Problem(1, target, sigma, law="uniform")


def friedman(*, sigma):
    """Friedman's first test function: ten uniform covariates, five of them without influence (chapter 8).

    m(x) = 10 sin(pi x1 x2) + 20 (x3 - 1/2)^2 + 10 x4 + 5 x5. Source: Friedman (1991).

    >>> import numpy as np
    >>> friedman(sigma=1.0).target(np.array([[0.0, 0, 0.5, 1, 1, 0, 0, 0, 0, 0]]))
    array([15.])
    """

    def target(x):
        waves = 10 * np.sin(np.pi * x[..., 0] * x[..., 1])
        return waves + 20 * (x[..., 2] - 0.5) ** 2 + 10 * x[..., 3] + 5 * x[..., 4]

    return Problem(10, target, sigma, law="uniform")
