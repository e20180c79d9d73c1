"""A numpy forward pass of the sentence encoder MiniLM, to look at its attention weights (chapter 9).

BERT (Devlin et al., 2019): word pieces, embeddings, and per layer attention and a two-layer perceptron, each followed
by layer normalisation of the sum with its input.
"""

import re
import unicodedata
from functools import cache
from typing import NamedTuple

import numpy as np

from nwmha import networks
from nwmha.attention import softmax_weights

EPSILON = 1e-12  # of the layer normalisation, from the network's configuration


class Pass(NamedTuple):
    """What happened to one text: ``pieces`` (n tokens), ``inputs (layers, n, p)`` of the layers, ``queries`` and
    ``keys (layers, heads, n, d_k)``, attention ``weights (layers, heads, n, n)``, ``output (n, p)``."""

    pieces: list
    inputs: np.ndarray
    queries: np.ndarray
    keys: np.ndarray
    weights: np.ndarray
    output: np.ndarray


def word_pieces(text):
    """Tokens of a text by greedy longest match with the network's vocabulary, between [CLS] and [SEP].

    Lower case, accents removed, punctuation apart; an unknown word becomes [UNK]. At most 512 tokens.
    """
    plain = "".join(c for c in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(c) != "Mn")
    found = ["[CLS]"]
    for word in re.findall(r"\w+|[^\w\s]", plain.replace("_", " _ ")):
        found += _split(word)
    if len(found) + 1 > 512:
        raise ValueError(f"text must have at most 512 tokens, got {len(found) + 1}")
    return [*found, "[SEP]"]


def _split(word):
    pieces, start, vocabulary = [], 0, _vocabulary()
    while start < len(word):
        for end in range(len(word), start, -1):
            piece = ("##" if start else "") + word[start:end]
            if piece in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(piece)
        start = end
    return pieces


@cache
def _vocabulary():
    lines = (networks.folder("MiniLM") / "model/vocab.txt").read_text(encoding="utf-8").splitlines()
    return {piece: number for number, piece in enumerate(lines)}


def encode(text):
    """Run MiniLM on a text in double precision; returns :class:`Pass`."""
    pieces = word_pieces(text)
    # Only the rows in use: in double precision the whole table would be 94 MB.
    words = networks.tensors("MiniLM")["embeddings.word_embeddings.weight"][[_vocabulary()[piece] for piece in pieces]]
    places = _parameter("embeddings.position_embeddings.weight")[: len(pieces)]
    kind = _parameter("embeddings.token_type_embeddings.weight")[0]
    x = _normalise(words + places + kind, "embeddings.LayerNorm")
    seen = []
    for number, layer in enumerate(_layers()):
        x, step = _block(x, layer, f"encoder.layer.{number}.")
        seen.append(step)
    return Pass(pieces, *(np.array(part) for part in zip(*seen)), x)


def _block(x, layer, name):
    """One layer: its output, and its input, queries, keys and attention weights."""
    queries, keys = x @ layer.W_Q + layer.b_Q[:, None], x @ layer.W_K + layer.b_K[:, None]
    weights = softmax_weights(queries, keys)
    attended = np.sum(weights @ (x @ layer.W_V + layer.b_V[:, None]) @ layer.W_O, axis=0) + layer.b_O
    middle = _normalise(x + attended, f"{name}attention.output.LayerNorm")
    hidden = _gelu(
        middle @ _parameter(f"{name}intermediate.dense.weight").T + _parameter(f"{name}intermediate.dense.bias")
    )
    outward = hidden @ _parameter(f"{name}output.dense.weight").T + _parameter(f"{name}output.dense.bias")
    return _normalise(middle + outward, f"{name}output.LayerNorm"), (x, queries, keys, weights)


def _normalise(x, name):
    centred = x - x.mean(axis=-1, keepdims=True)
    scale = np.sqrt(np.mean(centred**2, axis=-1, keepdims=True) + EPSILON)
    return centred / scale * _parameter(f"{name}.weight") + _parameter(f"{name}.bias")


def _gelu(x):
    from scipy.special import ndtr

    return x * ndtr(x)


@cache
def _parameter(name):
    return np.asarray(networks.tensors("MiniLM")[name], dtype=float)


@cache
def _layers():
    return networks.layers("MiniLM")
