"""The package as a whole: light import, short public surface, documented functions, small modules."""

import ast
import inspect
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import nwmha
from nwmha import plots

MODULES = sorted(Path(nwmha.__file__).parent.glob("*.py"))


def test_import_is_light():
    heavy = ("torch", "matplotlib", "seaborn", "sympy", "papermill", "sklearn", "safetensors")
    code = f"import sys, nwmha; print([m for m in {heavy} if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_public_surface_is_short_and_true():
    assert len(nwmha.__all__) <= 30 and nwmha.__all__ == sorted(nwmha.__all__)
    assert all(hasattr(nwmha, name) for name in nwmha.__all__)


@pytest.mark.parametrize("name", nwmha.__all__)
def test_every_public_name_is_documented_with_an_example(name):
    thing = getattr(nwmha, name)
    text = inspect.getdoc(thing)
    assert text and (">>>" in text or issubclass(thing, Exception))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.name)
def test_modules_and_functions_are_short(path):
    source = path.read_text(encoding="utf-8")
    assert source.count("\n") <= 250
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = body[-1].end_lineno - body[0].lineno + 1 if body else 0
            assert length <= 30, f"{node.name} has {length} lines"


def test_heads_are_orthonormal_and_haar(rng):
    W = nwmha.haar_heads(4000, 3, 2, rng=rng)
    np.testing.assert_allclose(W.mT @ W, np.broadcast_to(np.eye(2), (4000, 2, 2)), atol=1e-13)
    # Haar columns are uniform on the sphere: mean 0, second moment 1/p.
    assert np.abs(W.mean(axis=0)).max() < 5 / np.sqrt(3 * 4000)
    assert np.abs((W**2).mean(axis=0) - 1 / 3).max() < 5 * 0.3 / np.sqrt(4000)


def test_orthogonal_heads(rng):
    W = nwmha.orthogonal_heads(3, 7, 2, rng=rng)
    gram = np.einsum("hpi,kpj->hkij", W, W)
    np.testing.assert_allclose(gram, np.einsum("hk,ij->hkij", np.eye(3), np.eye(2)), atol=1e-14)
    with pytest.raises(ValueError, match=r"H \* d_k must not exceed p"):
        nwmha.orthogonal_heads(4, 7, 2, rng=rng)


@pytest.mark.parametrize(
    "sizes, message", [((0, 3, 1), "H must"), ((1, 3, 4), "d_k must not exceed p"), ((1, 2.5, 1), "p must")]
)
def test_head_sizes_are_checked(sizes, message, rng):
    with pytest.raises(ValueError, match=message):
        nwmha.haar_heads(*sizes, rng=rng)


def test_problems(rng):
    problem = nwmha.wave(sigma=0.1)
    X = problem.design(50, rng)
    assert X.shape == (50, 1) and X.min() >= 0 and X.max() <= 1
    residual = problem.respond(np.repeat(X, 400, axis=0), rng) - problem.target(np.repeat(X, 400, axis=0))
    assert abs(residual.std() / 0.1 - 1) < 0.03
    with pytest.raises(ValueError, match="sigma must"):
        nwmha.wave(sigma=-1)
    with pytest.raises(ValueError, match="law must"):
        nwmha.Problem(1, lambda x: x[:, 0], 1.0, law="cauchy")
    with pytest.raises(ValueError, match="n must"):
        problem.design(0, rng)
    with pytest.raises(ValueError, match=r"design must be \(n, 1\)"):
        problem.respond(np.ones((3, 2)), rng)


def test_stacked_parts_draws_what_it_is_given():
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    fig, ax = plt.subplots()
    plots.stacked_parts(ax, ["a", "b"], {"bias": [1, 2], "variance": [3, 4], "covariance": [-1, 5]})
    boxes = [(c.get_label(), [(b.get_y(), b.get_height()) for b in c]) for c in ax.containers]
    assert boxes == [("bias²", [(0, 1), (0, 2)]), ("variance", [(1, 3), (2, 4)]), ("covariance", [(0, -1), (6, 5)])]
    with pytest.raises(ValueError, match="must hold 2 values"):
        plots.stacked_parts(ax, ["a", "b"], {"bias": [1], "variance": [3, 4], "covariance": [-1, 5]})
    plt.close(fig)
