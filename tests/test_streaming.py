"""The streaming route against the dense one: any shape and scale, snapshots, iterators, precision, memory, errors."""

import tracemalloc

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from nwmha import _stream, head_estimates, head_moments, head_weights


def target(x):
    return x[:, 0] - 0.5 * x[:, 1] ** 2


def setting(seed, *, H=3, p=5, d_k=2, m=4, n=13, scale=1.0):
    rng = np.random.default_rng(seed)
    W, V = scale * rng.normal(size=(2, H, p, d_k))
    return W, V, rng.normal(size=(m, p)), rng.normal(size=(n, p)), rng.normal(size=n)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32), st.integers(1, 5), st.integers(1, 40), st.integers(1, 1400),
    st.sampled_from([0.0, 0.1, 1.0, 3.0, 10.0, 100.0]), st.booleans(),
)  # fmt: skip
def test_both_routes_agree_for_all_shapes_and_scales(seed, H, m, n, scale, tied):
    W, V, x, X, y = setting(seed, H=H, m=m, n=n, scale=scale)
    options = {} if tied else {"query_projections": V}
    # Both routes round their logits, each in its own way: beyond 1e3 that is the larger error, and no route avoids it.
    logits = np.abs((x @ (W if tied else V)) @ (X @ W).mT).max() / 2**0.5
    rounding = max(1e-12, 4 * np.finfo(float).eps * logits)
    dense, stream = (head_estimates(W, x, X, y, route=r, **options) for r in ("dense", "stream"))
    np.testing.assert_allclose(stream, dense, rtol=0, atol=rounding * max(1, np.abs(y).max()))
    dense, stream = (head_moments(W, x, X, target=target, sigma=1.0, route=r, **options) for r in ("dense", "stream"))
    np.testing.assert_allclose(stream.covariance, dense.covariance, rtol=0, atol=rounding)
    np.testing.assert_allclose(stream.bias, dense.bias, rtol=0, atol=rounding * max(1, np.abs(target(X)).max()))


@pytest.mark.parametrize("order", [1, -1])
def test_switching_to_the_safe_path_and_back_keeps_what_was_summed(order):
    """Small logits, then logits of 1e4, then small ones again, in separate blocks, in both orders."""
    W, V, x, X, y = setting(1, n=2000)
    X = X * np.repeat([0.1, 4000.0, 1e-3, 1.0], 500)[:, None]
    X, y = X[::order], y[::order]
    assert np.abs((x @ V) @ (X @ W).mT).max() > 1e4
    dense, stream = (head_estimates(W, x, X, y, query_projections=V, route=r) for r in ("dense", "stream"))
    np.testing.assert_allclose(stream, dense, atol=1e-11)


def test_snapshots_are_the_prefixes():
    W, _, x, X, y = setting(2, n=1500)
    sizes = (1, 2, 511, 512, 513, 1500)
    moments = head_moments(W, x, X, target=target, sigma=0.7, snapshots=sizes)
    estimates = head_estimates(W, x, X, y, snapshots=sizes)
    for k, n in enumerate(sizes):
        alone = head_moments(W, x, X[:n], target=target, sigma=0.7, route="dense")
        np.testing.assert_allclose(moments.bias[k], alone.bias, atol=1e-12)
        np.testing.assert_allclose(moments.covariance[k], alone.covariance, atol=1e-12)
        np.testing.assert_allclose(estimates[k], head_estimates(W, x, X[:n], y[:n], route="dense"), atol=1e-12)


@pytest.mark.parametrize("cuts", [[], [1], [700, 701, 1300]])
def test_an_iterator_of_blocks_is_the_whole_design(cuts):
    W, _, x, X, y = setting(3, n=1500)
    seen = []
    pieces = np.split(X, cuts)
    moments = head_moments(W, x, iter(pieces), target=target, sigma=0.7, progress=seen.append)
    whole = head_moments(W, x, X, target=target, sigma=0.7, route="dense")
    np.testing.assert_allclose(moments.bias, whole.bias, atol=1e-12)
    np.testing.assert_allclose(moments.covariance, whole.covariance, atol=1e-12)
    assert seen[-1] == 1500 and seen == sorted(set(seen))
    pairs = zip(pieces, np.split(y, cuts))
    np.testing.assert_allclose(head_estimates(W, x, pairs), head_estimates(W, x, X, y, route="dense"), atol=1e-12)


@pytest.mark.parametrize("route", ["dense", "stream"])
def test_several_responses_at_once(route):
    W, _, x, X, y = setting(4, n=900)
    both = head_estimates(W, x, X, np.stack([y, 3 * y], axis=1), route=route)
    assert both.shape == (4, 3, 2)
    np.testing.assert_allclose(both[..., 1], 3 * head_estimates(W, x, X, y), atol=1e-12)
    np.testing.assert_allclose(both[..., 0], np.moveaxis(head_weights(W, x, X) @ y, 0, 1), atol=1e-12)


@pytest.mark.parametrize("scale, tolerance", [(0.5, 2e-6), (20.0, 2e-3)])
def test_single_precision_stays_single_and_close(scale, tolerance):
    arrays = setting(5, n=1500, scale=scale)
    W, _, x, X, y = (a.astype(np.float32) for a in arrays)
    single = head_estimates(W, x, X, y, route="stream")
    exact = head_estimates(*(a.astype(np.float64) for a in (W, x, X, y)), route="dense")
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, atol=tolerance)
    # A shift is needed in single precision long before double precision needs one.
    assert _stream.UNSHIFTED[4] < 0.4 * np.log(np.finfo(np.float32).max)


def test_torch_gives_the_same():
    W, V, x, X, y = setting(6, n=1500)
    T = torch.from_numpy
    ours = head_estimates(W, x, X, y, query_projections=V)
    theirs = head_estimates(T(W), T(x), T(X), T(y), query_projections=T(V))
    assert isinstance(theirs, torch.Tensor)
    np.testing.assert_allclose(theirs.numpy(), ours, atol=1e-12)
    y = T(y[:40]).requires_grad_()
    assert torch.autograd.gradcheck(lambda w, v: head_estimates(w, T(x), T(X[:40]), v, route="stream"),
                                    (T(W).requires_grad_(), y))  # fmt: skip


def test_memory_does_not_grow_with_the_design():
    """2e5 and 1e5 points from a generator, and far less than the weights of one head would need."""
    W, _, x, _, _ = setting(7, H=8, m=100)

    def points(blocks):
        rng = np.random.default_rng(0)
        return (rng.normal(size=(10_000, 5)) for _ in range(blocks))

    peaks = []
    for blocks in (10, 20):
        tracemalloc.start()
        head_moments(W, x, points(blocks), target=target, sigma=1.0)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert max(peaks) < 10e6 < 0.1 * 8 * 100 * 200_000
    assert peaks[1] < 1.05 * peaks[0]


W, _, x, X, y = setting(8)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: head_moments(W, x, iter([]), target=target, sigma=1.0), "at least one point"),
        (lambda: head_estimates(W, x, iter([])), "at least one point"),
        (lambda: head_moments(W, x, iter([X, X[:, :3]]), target=target, sigma=1.0), r"design must be \(n, 5\)"),
        (lambda: head_moments(W, x, iter([X, np.nan * X]), target=target, sigma=1.0), "design must be finite"),
        (lambda: head_moments(W, x, X, target=target, sigma=1.0, snapshots=(5, 14)), "snapshots must not exceed"),
        (lambda: head_moments(W, x, X, target=target, sigma=1.0, snapshots=(5, 3)), "snapshots must be increasing"),
        (lambda: head_moments(W, x, X, target=target, sigma=1.0, snapshots=()), "snapshots must be increasing"),
        (lambda: head_moments(W, x, X, target=target, sigma=1.0, snapshots=(0,)), "snapshots must be an integer"),
        (lambda: head_moments(W, x, iter([X]), target=target, sigma=1.0, route="dense"), "route must be 'stream'"),
        (lambda: head_moments(W, x, X[None], target=target, sigma=1.0, snapshots=(3,)), r"design must be \(n, p\)"),
        (lambda: head_estimates(W, x, X), "response must be given"),
        (lambda: head_estimates(W, x, X, y[:-1]), r"response must be \(13,\)"),
        (lambda: head_estimates(W, x, X, np.full(13, np.inf)), "response must be finite"),
        (lambda: head_estimates(W, x, iter([(X, y)]), y), "response must be None"),
        (lambda: head_estimates(W, x, X, y, route="quick"), "route must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
