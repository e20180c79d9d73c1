"""Optimisation over heads and the small regressor: bounds are kept, values agree with numpy, runs repeat."""

import numpy as np
import pytest
import torch

from nwmha import families, gaussian, training
from nwmha.diversity import diversity_index, smallest_overlap


def mean_covariance(W):
    return gaussian.covariance_limit_matrix(W, beta=0.5).mean()


@pytest.mark.parametrize("H, p, d_k", [(3, 12, 4), (4, 16, 4), (5, 16, 4), (2, 3, 1)])
def test_the_minimum_is_the_frame_bound_where_a_frame_exists(H, p, d_k, rng):
    found = training.minimise(mean_covariance, families.haar_heads(H, p, d_k, rng=rng))
    np.testing.assert_allclose(found.projections.mT @ found.projections, np.eye(d_k) + np.zeros((H, 1, 1)), atol=1e-10)
    assert found.value == pytest.approx(float(mean_covariance(found.projections)), abs=1e-12)
    assert found.gradient < 1e-5
    assert diversity_index(found.projections) <= 1 - smallest_overlap(H, p, d_k) + 1e-10
    if H * d_k <= p:
        assert diversity_index(found.projections) == pytest.approx(1, abs=1e-8)


def test_descent_stays_on_the_manifold_and_goes_down(rng):
    path = training.descend(mean_covariance, families.haar_heads(3, 9, 3, rng=rng), steps=60)
    np.testing.assert_allclose(path.mT @ path, np.eye(3) + np.zeros((61, 3, 1, 1)), atol=1e-10)
    values = [float(mean_covariance(W)) for W in path]
    assert values[-1] < values[30] < values[0]


def tasks(models, p, **changes):
    rng = np.random.default_rng(0)
    settings = dict(n=12, sigma=0.5, steps=5, seed=3, batch=4, queries=3, records=2) | changes
    start = rng.normal(size=(models, 2, p, 2))
    return start, training.train_regressors(start, np.ones((models, p)), **settings)


def test_training_repeats_and_frozen_subspaces_stay():
    start, first = tasks(2, 5, frozen=[True, False])
    _, again = tasks(2, 5, frozen=[True, False])
    np.testing.assert_array_equal(first.projections, again.projections)
    assert diversity_index(first.projections[-1, 0]) == pytest.approx(diversity_index(start[0]), abs=1e-6)
    assert abs(diversity_index(first.projections[-1, 1]) - diversity_index(start[1])) > 1e-6
    assert first.steps.tolist() == [0, 2, 5] and np.all(first.outputs > 0)


def test_prediction_is_the_weighted_sum_of_our_heads():
    from nwmha import head_estimates

    W = torch.randn(1, 2, 5, 3, dtype=torch.float64)
    X, x, a, noise = training.draw_tasks(
        torch.ones(1, 5, dtype=torch.float64), 9, 1, 4, torch.Generator().manual_seed(0)
    )
    y = X @ a[..., None] + noise
    outputs = torch.tensor([[0.3, 0.9]], dtype=torch.float64)
    ours = head_estimates(W[0].numpy(), x[0, 0].numpy(), X[0, 0].numpy(), y[0, 0, :, 0].numpy()) @ outputs[0].numpy()
    np.testing.assert_allclose(training.regress(W, outputs, X, x, y)[0, 0].numpy(), ours, atol=1e-12)


def test_the_two_parts_add_up_to_the_error():
    _, trained = tasks(2, 5)
    spread = np.ones((2, 5))
    signal, noise = training.regression_error(trained, spread, n=12, sigma=0.5, seed=1, tasks=4000)
    W, outputs = (torch.tensor(v, dtype=torch.float32) for v in (trained.projections[-1], trained.outputs))
    X, x, a, e = training.draw_tasks(torch.ones(2, 5), 12, 4000, 2, torch.Generator().manual_seed(1))
    guess = training.regress(W, outputs, X, x, X @ a[..., None] + 0.5 * e)
    whole = ((guess - (x @ a[..., None])[..., 0]) ** 2).mean(dim=(1, 2)).numpy()
    np.testing.assert_allclose(signal + noise, whole, rtol=0.1)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: training.minimise(mean_covariance, np.ones((2, 3))), "start must be"),
        (lambda: training.descend(mean_covariance, np.eye(3)[None], steps=0), "steps must be"),
        (lambda: tasks(1, 5, steps=0), "steps must be"),
        (lambda: tasks(1, 5, seed=-1), "seed must be"),
        (
            lambda: training.train_regressors(np.ones((1, 2, 3, 1)), np.ones((2, 3)), n=4, sigma=1, steps=1, seed=0),
            "spread",
        ),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
