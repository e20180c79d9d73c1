r"""Exchangeable agents: the law of their average, unbiased estimates of its two numbers, and agents (chapter 8).

``estimates (data, agents, m)`` holds what every agent says at m query points, for independent data sets; given a
data set, the agents of a row are independent and have one law.
"""

from typing import NamedTuple

import numpy as np

from nwmha import _check
from nwmha.estimates import head_estimates


class Split(NamedTuple):
    """Squared bias, shared variance F and private variance W of one agent, averaged over the query points."""

    bias_squared: float
    shared: float
    private: float

    @property
    def rho(self):
        """Correlation of two agents."""
        return self.shared / (self.shared + self.private)

    def risk(self, H):
        """Mean squared error of the average of H agents, b^2 + F + W / H; ``H`` may be infinite or an array."""
        return self.bias_squared + self.shared + self.private / np.asarray(H, dtype=float)


def split(estimates, truth):
    r"""Unbiased estimates of squared bias, shared and private variance: a nested analysis of variance.

    .. math:: \hat W = \overline{\mathrm{Var}_k T_{jk}}, \quad \hat F = \mathrm{Var}_j \bar T_j - \hat W / K, \quad
        \widehat{b^2} = (\bar T - \theta)^2 - \mathrm{Var}_j \bar T_j / J

    ``estimates (J, K, m)`` with J, K >= 2; ``truth (m,)``. Returns :class:`Split`; an estimate may be slightly
    negative where the true value is 0. Source: Theorem 8.1.

    >>> import numpy as np
    >>> split(np.array([[[1.0], [3.0]], [[5.0], [7.0]]]), np.zeros(1))
    Split(bias_squared=12.0, shared=7.0, private=2.0)
    """
    T, truth = _estimates(estimates, truth)
    means = T.mean(axis=1)
    private, between = T.var(axis=1, ddof=1).mean(axis=0), means.var(axis=0, ddof=1)
    parts = (means.mean(axis=0) - truth) ** 2 - between / len(T), between - private / T.shape[1], private
    return Split(*(float(part.mean()) for part in parts))


def risks(estimates, truth, H):
    r"""One unbiased estimate of the risk of H agents for each data set, for any H up to infinity.

    .. math:: (\bar T_j - \theta)^2 + \mathrm{Var}_k(T_{jk}) \big(\tfrac1H - \tfrac1K\big)

    Parameters as in :func:`split`. Returns ``(J,)``, averaged over the query points. Source: Theorem 8.1 (c).

    >>> import numpy as np
    >>> risks(np.array([[[1.0], [3.0]], [[5.0], [7.0]]]), np.zeros(1), np.inf)
    array([ 3., 35.])
    """
    T, truth = _estimates(estimates, truth)
    return ((T.mean(axis=1) - truth) ** 2 + T.var(axis=1, ddof=1) * (1 / H - 1 / T.shape[1])).mean(axis=1)


def surplus(first, second, H, *, centre=None):
    r"""What the average of H agents of the second group has above the law that the first group predicts.

    .. math:: \bar T_{B,H}^2 - c_j - (s_j - c_j)/H

    with s and c the mean square and the mean product of different agents of group A, after subtraction of ``centre``
    (default: the mean of all; the truth gives the risk instead of the variance). Its mean over data sets is 0
    if the agents are exchangeable. The groups must be disjoint: on shared agents it vanishes for every kind of agent.
    Parameters: ``first``, ``second (J, K, m)``. Returns ``(J,)``.

    >>> import numpy as np
    >>> surplus(np.array([[[1.0], [3.0]]]), np.array([[[2.0], [4.0]]]), 2, centre=0.0)     # 9 - 3 - (5 - 3) / 2
    array([5.])
    """
    A, B, centre = _groups(first, second, centre)
    square, product = _products(A - centre)
    return ((B[:, :H] - centre).mean(axis=1) ** 2 - product - (square - product) / H).mean(axis=1)


def collapsed(first, second, H):
    r"""Variance of H averaged agents of the second group, on the scale on which the law is 1 / H.

    .. math:: \big(\mathrm{Var}(\bar T_H)/V - \rho\big) / (1 - \rho), \qquad V, \rho \text{ from the first group}

    >>> import numpy as np
    >>> agents = np.array([[[1.0], [-1.0]], [[2.0], [0.0]]])
    >>> float(collapsed(agents, agents, 1))
    1.0
    """
    A, B, centre = _groups(first, second, None)
    square, product = (part.mean() for part in _products(A - centre))
    return float((((B[:, :H] - centre).mean(axis=1) ** 2).mean() - product) / (square - product))


def attention_agents(projections, designs, responses, queries, *, inverse_temperature=None):
    """Heads as agents: ``projections (J, K, p, d_k)``, ``designs (J, n, p)``, ``responses (J, n)``; ``(J, K, m)``.

    >>> import numpy as np
    >>> attention_agents(np.ones((2, 3, 1, 1)), np.ones((2, 4, 1)), np.ones((2, 4)), np.zeros((5, 1))).shape
    (2, 3, 5)
    """
    W = _check.array("projections", projections, ("J", "K", "p", "d_k"))
    rows = zip(W, designs, responses, strict=True)
    temperature = {"inverse_temperature": inverse_temperature}
    return np.stack([head_estimates(heads, queries, X, y, **temperature).T for heads, X, y in rows])


def tree_agents(model, designs, responses, queries, *, rng):
    """Trees as agents: a scikit-learn ensemble ``model`` is fitted to every data set and taken apart; ``(J, K, m)``.

    ``model`` is any ensemble with ``random_state`` and ``estimators_``, such as ``RandomForestRegressor(K)``.

    >>> import numpy as np
    >>> from sklearn.ensemble import RandomForestRegressor
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.normal(size=(2, 9, 1)), np.ones((2, 9))
    >>> tree_agents(RandomForestRegressor(3), X, y, np.zeros((5, 1)), rng=rng).shape
    (2, 3, 5)
    """
    from sklearn.base import clone

    found = []
    for X, y in zip(designs, responses, strict=True):
        forest = clone(model).set_params(random_state=int(rng.integers(2**31))).fit(X, y)
        found.append([tree.predict(queries) for tree in forest.estimators_])
    return np.array(found)


def haar_agent_variance(direction, query, d_k):
    r"""Variance of a'Px over a uniformly random subspace of dimension d_k, P the projector on it.

    .. math:: \big(A - \tfrac{d^2}{p^2}\big)(a^\top x)^2 + B\,\big(|a|^2|x|^2 + (a^\top x)^2\big)

    ``direction`` a and ``query`` x are ``(p,)``, p >= 2. The mean is (d/p) a'x. Source: Proposition 8.5.

    >>> import numpy as np
    >>> round(float(haar_agent_variance(np.array([1.0, 0]), np.array([1.0, 0]), 1)), 12)      # cos^2 of a random angle
    0.125
    """
    a = _check.array("direction", direction, ("p",))
    x, p = _check.array("query", query, a.shape), _check.at_least("p", len(a), 2)
    _, _, d = _check.sizes(1, p, d_k)
    scale = p * (p - 1) * (p + 2)
    A, B, c = d * (d * (p + 1) - 2) / scale, d * (p - d) / scale, a @ x
    return (A - d**2 / p**2) * c**2 + B * ((a @ a) * (x @ x) + c**2)


def _estimates(estimates, truth):
    T = _check.array("estimates", estimates, ("J", "K", "m"))
    if min(T.shape[:2]) < 2:
        raise ValueError(f"estimates must hold at least 2 data sets and 2 agents, got {T.shape[:2]}")
    return T, _check.array("truth", truth, (T.shape[2],))


def _groups(first, second, centre):
    A = _check.array("first", first, ("J", "K", "m"))
    B = _check.array("second", second, (len(A), "K", A.shape[2]))
    return A, B, np.concatenate([A, B], axis=1).mean(axis=(0, 1)) if centre is None else centre


def _products(T):
    """Mean square, and mean product of two different agents, ``(J, m)`` each."""
    K, square = T.shape[1], (T**2).mean(axis=1)
    return square, (T.sum(axis=1) ** 2 - K * square) / (K * (K - 1))
