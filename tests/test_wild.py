"""Measures of trained heads against brute force, and the small models trained from scratch."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from nwmha import attention, diversity, families, induction, training, wild


def weights(rng, *shape):
    return attention.softmax_weights(rng.normal(size=(*shape, 3)), rng.normal(size=(*shape, 3)))


def test_variance_reduction_by_simulation_and_below_its_cap(rng):
    w = weights(rng, 5, 9)
    found = wild.variance_reduction(w)
    noise = rng.normal(size=(200_000, 9)) @ w[:, 2].T
    assert found.factor[2] == pytest.approx(noise.var(axis=0).mean() / noise.mean(axis=1).var(), rel=0.02)
    assert np.all(found.factor <= found.cap) and np.all(found.cap <= 5)
    identical = np.repeat(w[:1], 5, axis=0)
    assert np.allclose(wild.variance_reduction(identical).factor, 1)


def test_effective_dimension_of_extreme_and_random_heads(rng):
    assert wild.effective_dimension(families.identical_heads(3, 8, 2, rng=rng)) == pytest.approx(2)
    assert wild.effective_dimension(families.orthogonal_heads(3, 8, 2, rng=rng)) == pytest.approx(6)
    W = rng.normal(size=(3, 8, 2))
    T = sum(Q @ Q.T for Q in np.linalg.qr(W)[0])
    assert wild.effective_dimension(W) == pytest.approx(np.trace(T) ** 2 / np.sum(T**2))


def test_factor_products_by_the_full_matrices(rng):
    A, B = rng.normal(size=(3, 6, 2)), rng.normal(size=(3, 5, 2))
    full = A @ B.mT
    assert np.allclose(wild.factor_products(A, B), np.einsum("hpq,gpq->hg", full, full))
    assert np.allclose(wild.cosines(wild.factor_products(A, A)).diagonal(), 1)


def test_nulls_keep_what_they_promise(rng):
    W = rng.normal(size=(4, 9, 2)) * np.linspace(0.1, 3, 9)[:, None]
    mixed, turned = wild.mixed_heads(W, rng=rng), wild.turned_heads(W, rng=rng)
    assert np.allclose(np.einsum("hpd,hqd->pq", mixed, mixed), np.einsum("hpd,hqd->pq", W, W))
    assert np.allclose(np.linalg.svd(turned, compute_uv=False), np.linalg.svd(W, compute_uv=False))
    assert abs(diversity.diversity_index(mixed) - diversity.diversity_index(W)) > 1e-3
    overlaps = [1 - diversity.diversity_index(wild.turned_heads(W, rng=rng)) for _ in range(400)]
    assert np.mean(overlaps) == pytest.approx(2 / 9, abs=0.01)


def test_matched_weights_reach_the_wanted_sharpness(rng):
    queries, keys = ([rng.normal(size=(3, n, 4)) for n in (7, 11)] for _ in range(2))
    wanted = np.array([1.5, 2.0, 4.0])
    assert np.allclose(wild.sharpness(wild.matched_weights(queries, keys, wanted)), wanted, rtol=1e-5)


def test_mean_products_and_correlations_by_loops(rng):
    texts = [weights(rng, 3, n) for n in (5, 8)]
    wanted = np.mean(
        [[[w.shape[-1] * (w[a] * w[b]).sum(-1).mean() for b in range(3)] for a in range(3)] for w in texts], 0
    )
    assert np.allclose(wild.mean_products(texts), wanted)
    logits = [rng.normal(size=(3, 4, 6))]
    found = wild.mean_correlations(logits)
    assert found[0, 2] == pytest.approx(
        np.mean([np.corrcoef(logits[0][0, i], logits[0][2, i])[0, 1] for i in range(4)])
    )


def symmetric(rng, H=7):
    A = rng.normal(size=(H, H))
    return A + A.T


def test_pair_association_is_spearmans_with_an_honest_null(rng):
    A, B = [symmetric(rng) for _ in range(2)], [symmetric(rng) for _ in range(2)]
    upper = np.triu_indices(7, 1)
    found = wild.pair_association(A, B, permutations=199, rng=rng)
    assert np.allclose(found.layers, [spearmanr(a[upper], b[upper]).statistic for a, b in zip(A, B)])
    assert wild.pair_association(A, A, permutations=199, rng=rng).p_value == pytest.approx(1 / 200)
    pairs = [([symmetric(rng)], [symmetric(rng)]) for _ in range(200)]
    p_values = [wild.pair_association(a, b, permutations=39, rng=rng).p_value for a, b in pairs]
    assert np.mean(np.array(p_values) <= 0.05) < 0.12  # nominal 0.05, standard deviation 0.015


def test_alignment_is_the_overlap_of_orthonormal_heads(rng):
    import torch

    W = families.haar_heads(4, 8, 2, rng=rng)
    found = float(training.alignment(torch.tensor(W)))
    assert found == pytest.approx(1 - float(diversity.diversity_index(W)))


def test_the_penalty_pushes_heads_apart_and_only_where_it_is_asked_for(rng):
    start = np.repeat(rng.normal(size=(1, 2, 4, 2)), 2, axis=0)
    spread = np.tile([1.0, 1.0, 0.0, 0.0], (2, 1))
    options = {"n": 16, "sigma": 0.5, "steps": 200, "seed": 1, "rate": 0.03, "batch": 8, "records": 1}
    runs = training.train_regressors(start, spread, penalty=np.array([0.0, 5.0]), **options)
    free, pushed = (1 - diversity.diversity_index(W) for W in runs.projections[-1])
    assert pushed < free - 0.3
    plain = training.train_regressors(start, spread, **options)
    assert np.allclose(plain.projections[:, 0], runs.projections[:, 0])


def test_copiers_learn_and_repeat():
    first = induction.train_copiers(1, p=32, H=4, steps=200, seed=3, batch=24, records=2)
    assert first.accuracy[0] > 0.9 and first.keys.shape == (3, 1, 2, 4, 32, 8)
    short = [induction.train_copiers(2, p=8, H=2, steps=3, seed=0, records=1).keys for _ in range(2)]
    assert np.array_equal(*short)
    with pytest.raises(ValueError, match="H must divide p"):
        induction.train_copiers(1, p=9, H=2, steps=1, seed=0)
