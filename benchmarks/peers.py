"""The contestants: every function returns head estimates ``(m, H)`` or weight covariances ``(m, H, H)``.

All keys of a problem have one norm. Then the softmax kernel is a Gaussian kernel of their distance, and libraries that
know distances only compute the same estimate.
"""

import warnings

import numpy as np
import torch

from nwmha import _stream, head_estimates, head_moments

EXACT, SINGLE = 1e-10, 1e-3


class Problem:
    """Keys on a sphere, every head with a rotation of its own, and its own query projection."""

    def __init__(self, n, m, H, d_k, seed=0):
        rng = np.random.default_rng(seed)
        self.W = np.linalg.qr(rng.normal(size=(H, d_k, d_k)))[0]
        self.V = rng.normal(size=(H, d_k, d_k)) / d_k**0.5
        X = rng.normal(size=(n, d_k))
        self.X = d_k**0.5 * X / np.linalg.norm(X, axis=1, keepdims=True)
        self.x, self.y = rng.normal(size=(m, d_k)), rng.normal(size=n)
        self.beta = d_k**-0.5
        self.keys, self.queries = self.X @ self.W, self.x @ self.V  # (H, n, d_k), (H, m, d_k)

    def torch(self, dtype=torch.float64):
        return [torch.from_numpy(a).to(dtype) for a in (self.W, self.x, self.X, self.y, self.V)]


def streamed(problem, arrays, *, shifted=False):
    """Our estimates; ``shifted`` forces the path with running maxima, which large logits need."""
    W, x, X, y, V = arrays

    def run():
        kept = dict(_stream.UNSHIFTED)
        if shifted:
            _stream.UNSHIFTED.update({8: -1.0, 4: -1.0})
        try:
            return head_estimates(W, x, X, y, query_projections=V)
        finally:
            _stream.UNSHIFTED.update(kept)

    return run


def dense(problem, product):
    """Softmax weights of all heads at once, then a product with the responses."""

    def run():
        logits = problem.beta * problem.queries @ problem.keys.mT
        e = np.exp(logits - logits.max(axis=-1, keepdims=True))
        weights = e / e.sum(axis=-1, keepdims=True)
        return product(weights)

    return run


def fused(problem, width):
    """torch's scaled_dot_product_attention. With values as wide as the keys it takes its fused kernel."""
    q, k = (torch.from_numpy(a)[None].contiguous() for a in (problem.queries, problem.keys))
    v = torch.from_numpy(problem.y)[None, None, :, None].expand(1, q.shape[1], -1, width).contiguous()
    return lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v)[0, :, :, 0].T


def scikit_learn(problem, product=None):
    from sklearn.metrics.pairwise import rbf_kernel

    def run():
        heads = []
        for q, k in zip(problem.queries, problem.keys):
            kernel = rbf_kernel(q, k, gamma=problem.beta / 2)
            weights = kernel / kernel.sum(axis=1, keepdims=True)
            heads.append(weights if product else weights @ problem.y)
        return product(np.stack(heads)) if product else np.stack(heads, axis=1)

    return run


def scikit_fda(problem):
    from scipy.spatial.distance import cdist
    from skfda.misc.hat_matrix import NadarayaWatsonHatMatrix

    hat = NadarayaWatsonHatMatrix(bandwidth=problem.beta**-0.5)

    def run():
        pairs = zip(problem.queries, problem.keys)
        return np.stack([hat(delta_x=cdist(q, k), X_train=k, X=q) @ problem.y for q, k in pairs], axis=1)

    return run


def statsmodels(problem):
    from statsmodels.nonparametric.kernel_regression import KernelReg

    d_k = problem.keys.shape[-1]
    bandwidth = np.full(d_k, problem.beta**-0.5)

    def run():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            heads = [KernelReg(problem.y, k, "c" * d_k, reg_type="lc", bw=bandwidth) for k in problem.keys]
            return np.stack([h.fit(q)[0] for h, q in zip(heads, problem.queries)], axis=1)

    return run


def estimate_peers(problem, ours):
    """Contestants of task A, with the tolerance of their results."""
    d_k, size = problem.keys.shape[-1], problem.keys.shape[0] * len(problem.x) * len(problem.X)
    found = {
        ours: (streamed(problem, (problem.W, problem.x, problem.X, problem.y, problem.V)), EXACT),
        "nwmha, torch": (streamed(problem, problem.torch()), EXACT),
        "nwmha, numpy, running maxima": (
            streamed(problem, (problem.W, problem.x, problem.X, problem.y, problem.V), shifted=True), EXACT),
        "nwmha, torch, single precision": (streamed(problem, problem.torch(torch.float32)), SINGLE),
        "torch fused attention": (fused(problem, d_k), EXACT),
        "torch attention, narrow values": (fused(problem, 1), EXACT),
        "dense weights, matmul": (dense(problem, lambda w: (w @ problem.y[:, None])[..., 0].T), EXACT),
        "dense weights, einsum": (dense(problem, lambda w: np.einsum("hmn,n->mh", w, problem.y)), EXACT),
        "scikit-learn pairwise kernels": (scikit_learn(problem), EXACT),
        "scikit-fda": (scikit_fda(problem), EXACT),
    }  # fmt: skip
    if size <= 80_000_000 and d_k <= 8 and len(problem.x) <= 1000:
        found["statsmodels KernelReg"] = (statsmodels(problem), EXACT)
    return found


def covariance_peers(problem, ours):
    """Contestants of task B."""

    def streamed_covariance(W, x, X, V):
        return lambda: head_moments(W, x, X, target=lambda p: p[:, 0], sigma=1.0, query_projections=V).covariance

    def by_matmul(weights):
        by_query = np.ascontiguousarray(weights.transpose(1, 0, 2))
        return by_query @ by_query.mT

    W, x, X, _, V = problem.torch()
    return {
        ours: (streamed_covariance(problem.W, problem.x, problem.X, problem.V), EXACT),
        "nwmha, torch": (streamed_covariance(W, x, X, V), EXACT),
        "dense weights, matmul": (dense(problem, by_matmul), EXACT),
        "dense weights, einsum": (dense(problem, lambda w: np.einsum("hmn,gmn->mhg", w, w)), EXACT),
        "scikit-learn pairwise kernels": (scikit_learn(problem, by_matmul), EXACT),
    }
