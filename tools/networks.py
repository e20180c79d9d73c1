"""Overlap of the heads of five trained networks, layer by layer, for the stored table of chapter 9.

Usage: pip install --no-deps antiberty==0.1.3 rxnfp==0.1.0, then python tools/networks.py book/data/networks.csv
(the other two networks come with ``make weights``). Weight files are checked against their SHA-256.
"""

import csv
import sys

import numpy as np

from nwmha import diversity, networks, wild

BERT = {"prefix": "bert.encoder.layer.{}.attention.self.", "output": "bert.encoder.layer.{}.attention.output.dense."}
BARE = {key: value.removeprefix("bert.") for key, value in BERT.items()}
FILE = "{}/pytorch_model.bin"
MORE = {
    "AntiBERTy": networks.Network(
        "antiberty", "0.1.3", "antiberty", FILE.format("trained_models/AntiBERTy_md_smooth"),
        "f1ae33eac8cc8784a7d4be5a600141d2fa7bc7d8d5b3f5324d64a6a63bd0f137", 8, 8, **BERT,
    ),
    "RXNFP pretrained": networks.Network(
        "rxnfp", "0.1.0", "rxnfp", FILE.format("models/transformers/bert_pretrained"),
        "50a6ed263d33ae759affa82c1e85554cc5ea9f56145f5c7fb39b6c25d4356437", 4, 12, **BERT,
    ),
    "RXNFP fine-tuned": networks.Network(
        "rxnfp", "0.1.0", "rxnfp", FILE.format("models/transformers/bert_ft"),
        "5bb7f9f5831ec16a4b90545f95394853caf19ff9a8272291c86e0b231e0ff2ba", 4, 12, **BARE,
    ),
}  # fmt: skip
PARTS = {"K": "W_K", "Q": "W_Q", "V": "W_V", "O": "W_O"}
COLUMNS = ("network", "package", "version", "layer", "part", "p", "H", "d_k", "overlap", "mixed_mean", "mixed_sd")


def rows(name, draws=10):
    """One row for each layer and part: mean overlap of the heads, and of their columns dealt out at random."""
    network = networks.NETWORKS[name]
    for number, layer in enumerate(networks.layers(name)):
        for part, field in PARTS.items():
            W = getattr(layer, field)
            W = W.mT if part == "O" else W
            H, p, d_k = W.shape
            rng = np.random.default_rng([20260731, number, "KQVO".index(part)])
            overlap = lambda heads: 1 - diversity.diversity_index(heads)  # noqa: E731
            mixed = [overlap(wild.mixed_heads(W, rng=rng)) for _ in range(draws)]
            numbers = (f"{v:.6f}" for v in (overlap(W), np.mean(mixed), np.std(mixed, ddof=1)))
            yield name, network.package, network.version, number, part, p, H, d_k, *numbers


def main(target):
    networks.NETWORKS.update(MORE)
    with open(target, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for name in networks.NETWORKS:
            writer.writerows(rows(name))
            print(f"{name}: done")


if __name__ == "__main__":
    main(sys.argv[1])
