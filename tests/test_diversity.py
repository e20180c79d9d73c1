"""Principal angles, overlap, diversity index and families of heads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.linalg import subspace_angles

from nwmha import diversity as dv
from nwmha import families as fam


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 5), st.integers(0, 5))
def test_angles_agree_with_scipy_and_cosines(seed, d_k, extra):
    W, V = np.random.default_rng(seed).normal(size=(2, d_k + extra, d_k))
    angles = dv.principal_angles(W, V)
    np.testing.assert_allclose(angles, subspace_angles(W, V)[::-1], atol=1e-7)
    np.testing.assert_allclose(np.cos(angles), dv.principal_cosines(W, V), atol=1e-12)


def test_small_angles_survive():
    for angle in (1e-3, 1e-8, 1e-12):
        tilted = np.array([[np.cos(angle)], [np.sin(angle)], [0]])
        assert dv.principal_angles(np.eye(3)[:, :1], tilted)[0] == pytest.approx(angle, rel=1e-9)
    assert np.arccos(dv.principal_cosines(np.eye(2)[:, :1], np.array([[np.cos(1e-9)], [1e-9]])))[0] != 1e-9


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.integers(2, 5), st.integers(1, 4), st.integers(0, 4))
def test_index_is_gauge_invariant_and_the_raw_one_is_not(seed, H, d_k, extra):
    rng = np.random.default_rng(seed)
    W = fam.haar_heads(H, d_k + extra, d_k, rng=rng)
    B = np.eye(d_k) + 0.3 * rng.uniform(-1, 1, size=(H, d_k, d_k)) / d_k
    assert dv.diversity_index(W @ B) == pytest.approx(dv.diversity_index(W), abs=1e-12)
    assert -1e-12 <= dv.diversity_index(W) <= 1 - dv.smallest_overlap(H, d_k + extra, d_k) + 1e-12
    raw = dv.raw_diversity_index(W)
    assert dv.raw_diversity_index(2 * W) == pytest.approx(1 - 16 * (1 - raw))


def test_index_at_its_ends(rng):
    assert dv.diversity_index(fam.orthogonal_heads(3, 9, 3, rng=rng)) == pytest.approx(1, abs=1e-13)
    same = fam.identical_heads(3, 9, 3, rng=rng)
    assert dv.diversity_index(same) == pytest.approx(0, abs=1e-13)
    assert dv.raw_diversity_index(same) == pytest.approx(1 - 1 / 3)  # identical heads do not give 0
    with pytest.raises(ValueError, match="one head has no diversity index"):
        dv.diversity_index(same[:1])
    with pytest.raises(ValueError, match="full column rank"):
        dv.diversity_index(np.ones((2, 4, 2)))


def test_random_heads_have_the_overlap_of_chance(rng):
    """E kappa = d_k / p and Var kappa = 2 (p - k)^2 / (p^2 (p - 1)(p + 2)): 4000 independent pairs."""
    p, k, pairs = 8, 2, 4000
    W = fam.haar_heads(2 * pairs, p, k, rng=rng)
    kappa = (dv.principal_cosines(W[:pairs], W[pairs:]) ** 2).mean(axis=1)
    sd = np.sqrt(2 * (p - k) ** 2 / (p**2 * (p - 1) * (p + 2)))
    assert abs(kappa.mean() - k / p) < 5 * sd / np.sqrt(pairs)
    assert abs(kappa.std() / sd - 1) < 0.08


@pytest.mark.parametrize("kappa", [0.0, 0.3, 1.0])
def test_isoclinic_heads(kappa, rng):
    W = fam.isoclinic_heads(3, 12, 3, kappa=kappa, rng=rng)
    np.testing.assert_allclose(W.mT @ W, np.broadcast_to(np.eye(3), (3, 3, 3)), atol=1e-12)
    np.testing.assert_allclose(dv.principal_cosines(W[0], W[2]), kappa**0.5, atol=1e-7)
    with pytest.raises(ValueError, match="kappa must lie"):
        fam.isoclinic_heads(3, 12, 3, kappa=1.1, rng=rng)


@pytest.mark.parametrize("H, p, d_k", [(4, 8, 2), (5, 8, 2), (5, 6, 2), (7, 9, 3), (3, 3, 3), (6, 5, 1)])
def test_harmonic_heads_attain_the_bound(H, p, d_k):
    W = fam.harmonic_heads(H, p, d_k)
    np.testing.assert_allclose(W.mT @ W, np.broadcast_to(np.eye(d_k), (H, d_k, d_k)), atol=1e-13)
    np.testing.assert_allclose(np.einsum("hpk,hqk->pq", W, W), H * d_k / p * np.eye(p), atol=1e-13)
    assert 1 - dv.diversity_index(W) == pytest.approx(dv.smallest_overlap(H, p, d_k), abs=1e-13)


def test_bound_knows_forced_intersections():
    assert dv.smallest_overlap(2, 3, 2) == pytest.approx(1 / 2)  # two planes in space share a line
    assert dv.smallest_overlap(2, 8, 2) == 0
    for bad in ((1, 3, 2), (2, 3, 4)):
        with pytest.raises(ValueError):
            dv.smallest_overlap(*bad)
    with pytest.raises(ValueError, match="d_k must divide p"):
        fam.harmonic_heads(3, 5, 2)


def test_canonical_angles_see_the_design_covariance():
    """Counterexample (v): orthogonal subspaces, correlated features; and the other way round."""
    d = 3
    eye = np.eye(d)
    sigma = np.block([[eye, 0.8 * eye], [0.8 * eye, eye]])
    first, second = np.vstack([eye, 0 * eye]), np.vstack([0 * eye, eye])
    decorrelated = np.vstack([-0.8 * eye, eye]) / 0.6
    for other, subspace, canonical in ((second, 0.0, 0.64), (decorrelated, 0.64 / 1.64, 0.0)):
        W = np.stack([first, other])
        assert dv.overlap(W)[0, 1] == pytest.approx(subspace, abs=1e-12)
        assert dv.overlap(dv.whitened(W, sigma))[0, 1] == pytest.approx(canonical, abs=1e-12)
    with pytest.raises(ValueError, match="positive definite"):
        dv.whitened(W, -sigma)


def test_clustered_heads_are_twins_or_orthogonal(rng):
    W = fam.clustered_heads(6, 12, 2, clusters=3, rng=rng)
    assert set(np.unique(dv.overlap(W).round(10))) == {0.0, 1.0}
    assert 1 - dv.diversity_index(W) == pytest.approx(1 / 5)
    for clusters, word in ((4, "divide"), (0, "clusters"), (6, None)):
        if word is None:
            assert dv.diversity_index(fam.clustered_heads(6, 12, 2, clusters=6, rng=rng)) == pytest.approx(1)
            continue
        with pytest.raises(ValueError, match=word):
            fam.clustered_heads(6, 12, 2, clusters=clusters, rng=rng)
    with pytest.raises(ValueError, match="must not exceed p"):
        fam.clustered_heads(4, 5, 2, clusters=4, rng=rng)


@pytest.mark.parametrize("p, d_k", [(16, 4), (6, 2), (3, 1)])
def test_simplex_heads_are_isoclinic_and_tight(p, d_k):
    W = fam.simplex_heads(p, d_k)
    np.testing.assert_allclose(W.mT @ W, np.broadcast_to(np.eye(d_k), (W.shape[0], d_k, d_k)), atol=1e-13)
    np.testing.assert_allclose(dv.principal_cosines(W[0], W[-1]), d_k / p, atol=1e-12)
    H = p // d_k + 1
    assert dv.frame_potential(W) == pytest.approx((H * d_k) ** 2 / p)
    for bad in ((5, 2), (4, 4)):
        with pytest.raises(ValueError, match="d_k must divide p"):
            fam.simplex_heads(*bad)


def test_frame_potential_is_the_norm_of_the_sum_of_projections(rng):
    W = fam.haar_heads(5, 7, 3, rng=rng)
    assert dv.frame_potential(3 * W) == pytest.approx(np.sum(np.sum(W @ W.mT, axis=0) ** 2))
