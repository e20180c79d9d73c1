"""Optimisation over heads with orthonormal columns, and a small in-context regressor (chapter 5). Needs torch."""

from typing import NamedTuple

import numpy as np

from nwmha import _check


class Minimum(NamedTuple):
    """A local minimiser ``projections (heads, p, d_k)`` with its value and the largest entry of the gradient there."""

    projections: np.ndarray
    value: float
    gradient: float


def minimise(objective, start, *, iterations=500):
    """Minimise ``objective(W)`` over stacks of matrices with orthonormal columns, by L-BFGS in double precision.

    ``start (heads, p, d_k)`` with orthonormal columns; ``objective`` maps a torch tensor of that shape to a number.
    The constraint is torch's ``parametrizations.orthogonal``. Returns :class:`Minimum`.

    >>> import numpy as np
    >>> start = np.stack([np.eye(4)[:, :1], np.array([[0.6], [0.8], [0], [0]])])
    >>> found = minimise(lambda W: ((W[0].T @ W[1]) ** 2).sum(), start)
    >>> found.value < 1e-12
    True
    """
    import torch

    layer = _on_stiefel(start)
    optimiser = torch.optim.LBFGS(
        layer.parameters(), max_iter=_check.at_least("iterations", iterations, 1), tolerance_grad=1e-10,
        tolerance_change=1e-15, line_search_fn="strong_wolfe",
    )  # fmt: skip

    def step():
        optimiser.zero_grad()
        value = objective(layer.weight)
        value.backward()
        return value

    optimiser.step(step)
    value = float(step().detach())
    gradient = max(float(p.grad.abs().max()) for p in layer.parameters())
    return Minimum(layer.weight.detach().numpy().copy(), value, gradient)


def descend(objective, start, *, steps, rate=0.3):
    """Follow ``objective`` downhill, with orthonormal columns and momentum; return all ``(steps + 1, heads, p, d_k)``.

    Plain gradients, no adaptive step sizes: those turn rounding errors of vanishing gradients into whole steps.

    >>> import numpy as np
    >>> descend(lambda W: W.sum(), np.eye(3)[None, :, :1], steps=2).shape
    (3, 1, 3, 1)
    """
    import torch

    layer = _on_stiefel(start)
    optimiser = torch.optim.SGD(layer.parameters(), lr=rate, momentum=0.8)
    path = [layer.weight.detach().numpy().copy()]
    for _ in range(_check.at_least("steps", steps, 1)):
        optimiser.zero_grad()
        objective(layer.weight).backward()
        optimiser.step()
        path.append(layer.weight.detach().numpy().copy())
    return np.array(path)


def _on_stiefel(start):
    import torch
    from torch.nn.utils import parametrizations

    start = torch.as_tensor(_check.array("start", start, ("heads", "p", "d_k")))
    layer = torch.nn.Module()
    layer.weight = torch.nn.Parameter(start.clone())
    parametrizations.orthogonal(layer, "weight")
    layer.weight = start
    for parameter in layer.parameters():  # stored as a transposed view, which L-BFGS cannot flatten
        parameter.data = parameter.data.contiguous()
    return layer


class Regressors(NamedTuple):
    """Trained in-context regressors: ``projections (records, models, heads, p, d_k)``, ``outputs (models, heads)``."""

    steps: np.ndarray
    projections: np.ndarray
    outputs: np.ndarray


def train_regressors(
    start, spread, *, n, sigma, steps, seed, frozen=None, penalty=None, batch=32, queries=8, rate=0.01, records=20
):
    r"""Train many small attention regressors side by side on fresh linear tasks; models do not interact.

    .. math:: \hat m(x) = \sum_h c_h \sum_i \mathrm{softmax}_i\big(\langle W_h^\top x, W_h^\top X_i\rangle
        / \sqrt{d_k}\big)\, Y_i, \qquad c_h > 0

    Parameters: ``start (models, heads, p, d_k)``; ``spread (models, p)``, standard deviations of the coefficients of
    the target (all equal: isotropic; one nonzero: rank one); ``frozen (models,)``, True where only the scale of each
    head is trained; ``penalty (models,)``, factors of the :func:`alignment` of the heads that is added to the loss;
    Adam with a cosine schedule, double precision. Returns :class:`Regressors` with ``records`` + 1 snapshots.
    Source: section "Numerical verification" of chapter 5.

    >>> import numpy as np
    >>> done = train_regressors(np.ones((1, 2, 3, 1)), np.ones((1, 3)), n=4, sigma=0.5, steps=2, seed=0, records=2)
    >>> done.projections.shape, done.outputs.shape
    ((3, 1, 2, 3, 1), (1, 2))
    """
    import torch

    start = _check.array("start", start, ("models", "heads", "p", "d_k"))
    spread = torch.tensor(_check.array("spread", spread, (start.shape[0], start.shape[2])), dtype=torch.float64)
    kept = torch.tensor(np.zeros(len(start)) if frozen is None else frozen, dtype=torch.float64)[:, None, None, None]
    generator = torch.Generator().manual_seed(_check.at_least("seed", seed, 0))
    base = torch.tensor(start, dtype=torch.float64)
    shift, scale = torch.zeros_like(base, requires_grad=True), torch.ones_like(base[..., 0, 0], requires_grad=True)
    logs = torch.full(base.shape[:2], -np.log(start.shape[1]), dtype=torch.float64, requires_grad=True)
    optimiser = torch.optim.Adam([shift, scale, logs], lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    current = lambda: scale[..., None, None] * (base + (1 - kept) * shift)  # noqa: E731
    marks = np.unique(np.linspace(0, steps, records + 1).astype(int))
    found = [current().detach().numpy().copy()]
    for step in range(1, _check.at_least("steps", steps, 1) + 1):
        X, x, a, noise = draw_tasks(spread, n, batch, queries, generator)
        guess = regress(current(), torch.exp(logs), X, x, X @ a[..., None] + sigma * noise)
        optimiser.zero_grad()
        loss = ((guess - (x @ a[..., None])[..., 0]) ** 2).mean(dim=(1, 2))
        if penalty is not None:
            loss = loss + torch.as_tensor(penalty) * alignment(current())
        loss.sum().backward()
        optimiser.step()
        schedule.step()
        if step in marks:
            found.append(current().detach().numpy().copy())
    return Regressors(marks, np.array(found, dtype=float), torch.exp(logs).detach().numpy().astype(float))


def alignment(W):
    r"""A smooth stand-in for the mean overlap: differentiable, 1 for equal and 0 for orthogonal heads with equal norms.

    .. math:: \frac{1}{H(H-1)} \sum_{h\ne h'} \frac{d_k\,\|W_h^\top W_{h'}\|_F^2}{\|W_h\|_F^2\,\|W_{h'}\|_F^2}

    ``W (..., heads, p, d_k)``, a torch tensor. It equals the mean overlap if the columns of each head are orthogonal
    and have one length. Returns ``(...)``.

    >>> import torch
    >>> float(alignment(torch.eye(4).reshape(4, 2, 2).transpose(0, 1)))
    0.0
    """
    H, d_k = W.shape[-3], W.shape[-1]
    gram = (W[..., :, None, :, :].mT @ W[..., None, :, :, :]).pow(2).sum(dim=(-2, -1))
    norms = W.pow(2).sum(dim=(-2, -1))
    cosine = d_k * gram / (norms[..., :, None] * norms[..., None, :])
    return (cosine.sum(dim=(-2, -1)) - cosine.diagonal(dim1=-2, dim2=-1).sum(-1)) / (H * (H - 1))


def draw_tasks(spread, n, batch, queries, generator):
    """Designs, queries, coefficients and standard noise of a batch of tasks for every model."""
    import torch

    models, p = spread.shape
    normal = lambda *size: torch.randn(*size, generator=generator, dtype=spread.dtype)  # noqa: E731
    X, x = normal(models, batch, n, p), normal(models, batch, queries, p)
    return X, x, spread[:, None] * normal(models, batch, p), normal(models, batch, n, 1)


def regress(W, outputs, X, x, y):
    """Predictions ``(models, batch, queries)`` of regressors with projections W and output weights ``outputs``."""
    keys, transformed = X[:, None] @ W[:, :, None], x[:, None] @ W[:, :, None]
    weights = (transformed @ keys.mT * W.shape[-1] ** -0.5).softmax(dim=-1)
    return ((weights @ y[:, None])[..., 0] * outputs[..., None, None]).sum(dim=1)


def regression_error(trained, spread, *, n, sigma, seed, tasks=2000):
    """Noise-free error and noise part of trained regressors on fresh tasks, ``(2, models)``; the error is their sum."""
    import torch

    spread = torch.tensor(spread, dtype=torch.float64)
    W, outputs = (torch.tensor(a, dtype=torch.float64) for a in (trained.projections[-1], trained.outputs))
    X, x, a, noise = draw_tasks(spread, n, tasks, 2, torch.Generator().manual_seed(seed))
    signal = regress(W, outputs, X, x, X @ a[..., None]) - (x @ a[..., None])[..., 0]
    return np.array(
        [part.pow(2).mean(dim=(1, 2)).numpy() for part in (signal, sigma * regress(W, outputs, X, x, noise))]
    )
