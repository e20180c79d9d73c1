"""Small transformers that learn to copy: two attention layers, repeated random sequences (chapter 9). Needs torch."""

from typing import NamedTuple

import numpy as np

from nwmha import _check

SYMBOLS, LENGTH = 16, 12  # vocabulary; length of the random part, which is then repeated once


class Copiers(NamedTuple):
    """Trained models: ``keys (records, models, layers, heads, p, d_k)`` at ``steps``, final ``accuracy`` and ``loss``
    on the second half of fresh sequences, ``(models,)`` each."""

    steps: np.ndarray
    keys: np.ndarray
    accuracy: np.ndarray
    loss: np.ndarray


def train_copiers(models, *, p, H, steps, seed, penalty=None, rate=0.01, batch=32, records=10):
    r"""Train small causal transformers side by side on sequences whose second half repeats the first.

    Two layers, attention only, no normalisation; every head reads x W_Q, x W_K, x W_V of width p / H. The loss is the
    cross-entropy of the next symbol in the second half, plus ``penalty (models,)`` times the mean
    :func:`nwmha.training.alignment` of the keys of both layers. Adam with a cosine schedule. A model that solves the
    task looks back for the symbol that followed the present one the last time: an induction head (Olsson et al., 2022).

    >>> train_copiers(1, p=8, H=2, steps=2, seed=0, records=2).keys.shape
    (3, 1, 2, 2, 8, 4)
    """
    import torch

    from nwmha.training import alignment

    _check.at_least("models", models, 1)
    if p % _check.at_least("H", H, 1):
        raise ValueError(f"H must divide p, got H = {H}, p = {p}")
    generator = torch.Generator().manual_seed(_check.at_least("seed", seed, 0))
    weights = _start(models, p, H, generator)
    optimiser = torch.optim.Adam(weights.values(), lr=rate)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, _check.at_least("steps", steps, 1))
    marks = np.unique(np.linspace(0, steps, records + 1).astype(int))
    keep = lambda: weights["K"].detach().numpy().astype(float)  # noqa: E731
    path = [keep()]
    for step in range(1, steps + 1):
        loss, _ = _next_symbol(weights, _sequences(models, batch, generator))
        optimiser.zero_grad()
        if penalty is not None:
            loss = loss + torch.as_tensor(penalty) * alignment(weights["K"]).mean(dim=1)
        loss.sum().backward()
        optimiser.step()
        schedule.step()
        if step in marks:
            path.append(keep())
    with torch.no_grad():
        loss, accuracy = _next_symbol(weights, _sequences(models, 200, generator))
    return Copiers(marks, np.array(path), accuracy.numpy(), loss.numpy())


def _start(models, p, H, generator):
    """Initial weights: symbols, positions, Q, K, V, O of both layers, and the map to the next symbol."""
    import torch

    shapes = {"symbols": (SYMBOLS, p), "places": (2 * LENGTH, p), "out": (p, SYMBOLS)}
    shapes |= {name: (2, H, p, p // H) for name in "QKV"} | {"O": (2, H, p // H, p)}
    draw = lambda shape: torch.randn(models, *shape, generator=generator, dtype=torch.float64)  # noqa: E731
    return {name: (draw(shape) * p**-0.5).requires_grad_() for name, shape in shapes.items()}


def _sequences(models, batch, generator):
    import torch

    return torch.randint(SYMBOLS, (models, batch, LENGTH), generator=generator).repeat(1, 1, 2)


def _next_symbol(weights, sequences):
    """Cross-entropy and accuracy of the next symbol in the second half, ``(models,)`` each."""
    import torch

    rows = torch.arange(len(sequences))[:, None, None]
    x = weights["symbols"][rows, sequences] + weights["places"][:, None]
    future = torch.ones(2 * LENGTH, 2 * LENGTH, dtype=torch.bool).triu(1)
    for layer in range(2):
        q, k, v = (x[:, :, None] @ weights[name][:, None, layer] for name in "QKV")
        logits = (q @ k.mT * q.shape[-1] ** -0.5).masked_fill(future, float("-inf"))
        x = x + (logits.softmax(dim=-1) @ v @ weights["O"][:, None, layer]).sum(dim=2)
    scores = (x @ weights["out"][:, None])[:, :, LENGTH - 1 : -1].log_softmax(dim=-1)
    wanted = sequences[:, :, LENGTH:, None]
    loss = -scores.gather(-1, wanted).mean(dim=(1, 2, 3))
    return loss, (scores.argmax(dim=-1, keepdim=True) == wanted).double().mean(dim=(1, 2, 3))
