"""Chapter 2: identity, bandwidths, transport, reduction of a layer; against torch and against refusal of bad input."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nwmha
from nwmha.attention import project

torch = pytest.importorskip("torch")
sizes = st.integers(1, 9)


def heads(rng, H=3, p=7, d_k=4, m=5, n=11):
    W_K, W_Q = rng.normal(size=(2, H, p, d_k))
    return W_K, W_Q, rng.normal(size=(m, p)), rng.normal(size=(n, p)), rng.normal(size=n)


@settings(max_examples=50, deadline=None)
@given(sizes, sizes, sizes, sizes, sizes, st.floats(1e-3, 1e4), st.integers(0, 2**32))
def test_weights_sum_to_one_at_any_scale(H, p, d_k, m, n, scale, seed):
    W_K, W_Q, x, X, _ = heads(np.random.default_rng(seed), H, p, d_k, m, n)
    weights = nwmha.head_weights(W_K, x, scale * X, query_projections=W_Q)
    assert weights.shape == (H, m, n)
    assert np.all(weights >= 0)
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=0, atol=1e-14)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_invariances(seed):
    """Permuting the design permutes the weights; shifting all keys or changing the gauge changes nothing."""
    rng = np.random.default_rng(seed)
    W_K, W_Q, x, X, _ = heads(rng)
    weights = nwmha.head_weights(W_K, x, X, query_projections=W_Q)
    order = rng.permutation(X.shape[0])
    close = {"rtol": 0, "atol": 1e-11}
    np.testing.assert_allclose(
        nwmha.head_weights(W_K, x, X[order], query_projections=W_Q), weights[..., order], **close
    )
    np.testing.assert_allclose(
        nwmha.head_weights(W_K, x, X + rng.normal(size=7), query_projections=W_Q), weights, **close
    )
    B = np.eye(4) + 0.2 * rng.normal(size=(4, 4)) / 2
    gauged = nwmha.head_weights(W_K @ B, x, X, query_projections=W_Q @ np.linalg.inv(B).T)
    np.testing.assert_allclose(gauged, weights, **close)


def test_weights_differ_when_they_should(rng):
    """The control of the invariance test: another query projection is another head."""
    W_K, W_Q, x, X, _ = heads(rng)
    assert np.abs(nwmha.head_weights(W_K, x, X) - nwmha.head_weights(W_K, x, X, query_projections=W_Q)).max() > 0.05


def test_logits_of_ten_thousand_are_safe():
    weights = nwmha.softmax_weights([[1e2, 0.0]], [[1e2, 0.0], [-1e2, 0.0], [1e2, 1.0]], inverse_temperature=1.0)
    np.testing.assert_array_equal(weights, [[0.5, 0.0, 0.5]])


def test_scaled_dot_product_attention_agrees(rng):
    W_K, W_Q, x, X, Y = heads(rng)
    keys, queries = (torch.from_numpy(np.ascontiguousarray(a)) for a in project(W_K, x, X, query_projections=W_Q))
    values = torch.from_numpy(Y).expand(3, -1)[..., None]
    fused = torch.nn.functional.scaled_dot_product_attention(queries, keys, values)[..., 0]
    estimate = nwmha.nadaraya_watson(nwmha.head_weights(W_K, x, X, query_projections=W_Q), Y)
    np.testing.assert_allclose(estimate, fused.numpy(), rtol=0, atol=1e-12)


def test_multihead_attention_layer_is_the_ensemble_it_reduces_to(rng):
    """A torch layer on tokens (x, y) whose value maps read y: its output is sum_h alpha_h m_h(x)."""
    H, p, d_k = 4, 11, 3  # embed_dim = p + 1 = H * d_k
    W_K, W_Q, x, X, Y = heads(rng, H, p, d_k)
    alpha = np.array([0.4, 0.3, 0.2, 0.3])
    layer = torch.nn.MultiheadAttention(p + 1, H, bias=False, batch_first=True, dtype=torch.float64)
    values = np.zeros((H, p + 1, d_k))
    values[:, p, 0] = 1.0
    outputs = np.zeros((H, d_k, p + 1))
    outputs[:, 0, p] = alpha
    pad = np.zeros((H, 1, d_k))
    stack = [np.concatenate([W, pad], axis=1).transpose(0, 2, 1).reshape(H * d_k, p + 1) for W in (W_Q, W_K)]
    stack.append(values.transpose(0, 2, 1).reshape(H * d_k, p + 1))
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.from_numpy(np.concatenate(stack)))
        layer.out_proj.weight.copy_(torch.from_numpy(outputs.reshape(H * d_k, p + 1).T.copy()))
        tokens = torch.from_numpy(np.column_stack([X, Y]))[None]
        query = torch.from_numpy(np.column_stack([x, np.zeros(5)]))[None]
        out = layer(query, tokens, tokens, need_weights=False)[0][0, :, p].numpy()
    reduction = nwmha.layer_reduction(values, outputs[:, :, p:], covariates=p)
    np.testing.assert_allclose(reduction.alpha, alpha, atol=1e-15)
    np.testing.assert_allclose(reduction.residual, 0, atol=1e-15)
    ours = reduction.alpha @ nwmha.nadaraya_watson(nwmha.head_weights(W_K, x, X, query_projections=W_Q), Y)
    np.testing.assert_allclose(out, ours, rtol=0, atol=1e-12)


def test_layer_that_reads_covariates_is_no_ensemble(rng):
    reduction = nwmha.layer_reduction(rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 3, 1)), covariates=3)
    assert np.all(reduction.residual > 0.1)


def test_gaussian_identity_needs_equal_norms_and_the_right_bandwidth(rng):
    keys, queries = rng.normal(size=(20, 5)), rng.normal(size=(4, 5))
    b = nwmha.gaussian_bandwidth(5**-0.5)
    softmax = nwmha.softmax_weights(queries, keys)
    multiplier = np.sum(keys**2, axis=1) / (2 * 5**0.5)
    weighted = nwmha.gaussian_weights(queries, keys, bandwidth=b, log_multiplier=multiplier)
    np.testing.assert_allclose(weighted, softmax, atol=1e-14)
    assert np.abs(nwmha.gaussian_weights(queries, keys, bandwidth=b) - softmax).max() > 1e-2
    unit = keys / np.linalg.norm(keys, axis=1, keepdims=True)
    np.testing.assert_allclose(
        nwmha.gaussian_weights(queries, unit, bandwidth=b), nwmha.softmax_weights(queries, unit), atol=1e-14
    )
    wrong = nwmha.gaussian_weights(queries, unit, bandwidth=5**-0.25)
    assert np.abs(wrong - nwmha.softmax_weights(queries, unit)).max() > 1e-2


@pytest.mark.parametrize("rank", [4, 2])
def test_transported_query_gives_the_symmetric_head(rank, rng):
    W_K, W_Q, x, X, _ = heads(rng)
    W_K[:, :, rank:] = W_K[:, :, :1]  # a deficient rank is allowed: the inverse becomes a pseudo-inverse
    z = nwmha.transported_query(W_K, W_Q, x)
    for h in range(3):
        symmetric = nwmha.head_weights(W_K[h : h + 1], z[h], X)[0]
        np.testing.assert_allclose(symmetric, nwmha.head_weights(W_K, x, X, query_projections=W_Q)[h], atol=1e-12)


def test_nadaraya_watson_minimises_the_weighted_square(rng):
    kernel, Y = rng.uniform(size=(3, 8)), rng.normal(size=8)
    best = nwmha.nadaraya_watson(kernel, Y)
    loss = lambda c: (kernel * (Y - c[:, None]) ** 2).sum(axis=1)  # noqa: E731
    for step in (-1e-3, 1e-3):
        assert np.all(loss(best) < loss(best + step))
    np.testing.assert_allclose(nwmha.nadaraya_watson(kernel, np.column_stack([Y, -Y])), np.column_stack([best, -best]))


def test_torch_gives_the_same_and_differentiates(rng):
    W_K, W_Q, x, X, Y = heads(rng)
    T = torch.from_numpy
    weights = nwmha.head_weights(T(W_K), T(x), T(X), query_projections=T(W_Q))
    assert isinstance(weights, torch.Tensor) and weights.dtype == torch.float64
    np.testing.assert_allclose(weights.numpy(), nwmha.head_weights(W_K, x, X, query_projections=W_Q), atol=1e-15)
    z = nwmha.transported_query(T(W_K), T(W_Q), T(x)).numpy()
    np.testing.assert_allclose(z, nwmha.transported_query(W_K, W_Q, x), atol=1e-12)

    def loss(w):
        return nwmha.nadaraya_watson(nwmha.head_weights(w, T(x), T(X)), T(Y)).sum()

    assert torch.autograd.gradcheck(loss, T(W_K).requires_grad_())


def test_float32_is_kept():
    assert nwmha.softmax_weights(np.zeros((1, 2), np.float32), np.ones((3, 2), np.float32)).dtype == np.float32


GOOD = {"projections": np.ones((2, 3, 1)), "queries": np.ones((4, 3)), "design": np.ones((5, 3))}
BAD = [
    ({"projections": np.ones((3, 1))}, r"projections must be \(heads, p, d_k\), got \(3, 1\)"),
    ({"queries": np.ones((4, 2))}, r"queries must be \(..., m, 3\), got \(4, 2\)"),
    ({"design": np.full((5, 3), np.nan)}, "design must be finite"),
    ({"queries": np.full((5, 3), np.inf)}, "queries must be finite"),
    ({"design": np.ones((0, 3))}, "design must not be empty"),
    ({"inverse_temperature": 0.0}, "inverse_temperature must be a finite number above 0"),
    ({"inverse_temperature": float("nan")}, "inverse_temperature"),
    ({"query_projections": np.ones((2, 3, 2))}, "query_projections must be"),
    ({"design": torch.ones(5, 3)}, "design must come from the same array library"),
]


@pytest.mark.parametrize("change, message", BAD)
def test_bad_input_is_refused_by_name(change, message):
    with pytest.raises(ValueError, match=message):
        nwmha.head_weights(**{**GOOD, **change})


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: nwmha.nadaraya_watson([[1.0, -1.0]], [1.0, 2.0]), "kernel must be non-negative"),
        (lambda: nwmha.nadaraya_watson([[0.0, 0.0]], [1.0, 2.0]), "kernel must be non-negative with a positive sum"),
        (lambda: nwmha.nadaraya_watson([[1.0, 1.0]], [1.0]), "response must be"),
        (lambda: nwmha.gaussian_weights([[0.0]], [[1.0]], bandwidth=-1), "bandwidth must be"),
        (lambda: nwmha.gaussian_bandwidth(0), "inverse_temperature must be"),
        (lambda: nwmha.layer_reduction(np.ones((1, 3, 2)), np.ones((1, 2, 1)), covariates=1), "covariates must be 2"),
        (lambda: nwmha.layer_reduction(np.zeros((1, 3, 2)), np.ones((1, 2, 1)), covariates=2), "must not vanish"),
    ],
)
def test_other_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
