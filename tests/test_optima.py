"""Closed forms of chapter 5: concentrated targets, the escape path, the random baseline; the logit simulation."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nwmha import families, gaussian, optima, simulate
from nwmha.diversity import diversity_index, principal_cosines, random_index


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 4), st.integers(1, 3), st.integers(0, 3), st.floats(0, np.pi / 2))
def test_no_overlap_grows_on_the_escape_path(seed, H, d_k, extra, t):
    rng = np.random.default_rng(seed)
    W = families.haar_heads(H, H * d_k + extra, d_k, rng=rng)
    W[1, :, 0] = W[0, :, 0]  # a degenerate pair, orthonormalised again
    W[1] = np.linalg.qr(W[1])[0]
    moved = optima.escape_path(W, 0, t)
    np.testing.assert_allclose(moved[0].T @ moved[0], np.eye(d_k), atol=1e-10)
    for other in range(1, H):
        before, after = (principal_cosines(V[0], V[other]) ** 2 for V in (W, moved))
        assert np.all(after <= np.cos(t) ** 2 * before + 1e-10)


def test_optimum_against_direct_search_over_alignments():
    for r, signal in ((1, 0.5), (2, 3.0), (3, 40.0)):
        best = optima.concentrated_optimum(4, 4, r, beta=0.5, signal=signal)
        grid = np.linspace(0.25, 1, 20001)
        values = signal * (1 - grid / 2) ** 2 + 0.75 * gaussian.covariance_limit(
            np.repeat(((4 * grid - 1) / 3)[:, None], r, axis=1), beta=0.5
        )
        assert best.error <= values.min() + 1e-12 and abs(best.alignment - grid[values.argmin()]) < 1e-4
        assert best.alignment > 0.25


def test_threshold_is_where_full_alignment_begins():
    for r in (1, 2, 3):
        threshold = optima.alignment_threshold(r, beta=0.5)
        below, above = (optima.concentrated_optimum(4, 4, r, beta=0.5, signal=s * threshold) for s in (0.98, 1.02))
        assert below.alignment < 1 - 1e-4 and above.alignment == pytest.approx(1, abs=1e-9)
        assert above.index == pytest.approx(1 - r / 4)
    reference = {0.05: 0.9924, 0.2: 0.9354, 0.5: 0.8399, 0.9: 0.7639, 1.1: 0.75}
    for share, index in reference.items():
        signal = share * optima.alignment_threshold(1, beta=0.5)
        assert optima.concentrated_optimum(4, 4, 1, beta=0.5, signal=signal).index == pytest.approx(index, abs=6e-5)
    assert optima.alignment_threshold(1, beta=8**-0.5) == pytest.approx(0.789, abs=5e-4)


def test_random_index_against_simulation(rng):
    mean, deviation = random_index(4, 8, 2)
    values = np.array([diversity_index(families.haar_heads(4, 8, 2, rng=rng)) for _ in range(2000)])
    assert abs(values.mean() - mean) < 5 * deviation / 2000**0.5
    assert values.std() == pytest.approx(deviation, rel=0.08)
    assert random_index(12, 768, 64)[1] == pytest.approx(0.000208, abs=5e-7)


def test_simulated_products_have_the_known_ends(rng):
    sample = simulate.paired_products(np.array([[0.0] * 4, [1.0] * 4]), 16, beta=0.5, replicates=20_000, rng=rng)
    error = sample.std(axis=1) / 20_000**0.5
    ends = np.array([1.0, gaussian.integrated_ends(4, 16, beta=0.5)[0]])
    assert np.all(np.abs(sample.mean(axis=1) - ends) < 4.5 * error)
    same = simulate.paired_products(np.ones((1, 3)), 8, beta=0.5, replicates=50, rng=rng)
    assert np.all(same >= 1 - 1e-12)  # equal heads: n |w|^2


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: optima.concentrated_optimum(4, 4, 5, beta=0.5, signal=1.0), "r must not exceed"),
        (lambda: optima.concentrated_optimum(1, 4, 1, beta=0.5, signal=1.0), "H must be"),
        (lambda: optima.alignment_threshold(1, beta=0.8), "2 beta"),
        (lambda: optima.escape_path(np.zeros((3, 4, 2)), 0, 0.1), "H \\* d_k <= p"),
        (lambda: optima.escape_path(np.zeros((2, 4, 2)), 0, 2.0), "t must lie"),
        (lambda: random_index(1, 4, 2), "H and p"),
        (lambda: simulate.paired_products(np.full((1, 2), 1.5), 4, beta=1.0, replicates=2,
                                          rng=np.random.default_rng(0)), "u must lie"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
