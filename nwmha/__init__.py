"""Multi-head attention as a Nadaraya-Watson ensemble: the computations behind the book.

One module per idea, in the order of the chapters: attention and estimates (2), ensemble, corollaries and bounds (3),
diversity, families and gaussian (4 to 6), agents and colony (8), networks, encoder and wild (9), and the helpers
problems, claims, plots, reruns. Importing the package imports neither torch nor matplotlib.
"""

from nwmha.attention import (
    gaussian_bandwidth,
    gaussian_weights,
    head_weights,
    layer_reduction,
    nadaraya_watson,
    softmax_weights,
    transported_query,
)
from nwmha.bounds import correlation_floor, covariance_bounds, effective_sample_size
from nwmha.claims import ClaimFailed, Ledger
from nwmha.corollaries import add_head, ambiguity, equicorrelated_variance
from nwmha.ensemble import decompose, head_moments, over_designs
from nwmha.estimates import head_estimates
from nwmha.families import haar_heads, identical_heads, orthogonal_heads
from nwmha.problems import Problem, linear_plus_sine, wave

__all__ = [
    "ClaimFailed",
    "Ledger",
    "Problem",
    "add_head",
    "ambiguity",
    "correlation_floor",
    "covariance_bounds",
    "decompose",
    "effective_sample_size",
    "equicorrelated_variance",
    "gaussian_bandwidth",
    "gaussian_weights",
    "haar_heads",
    "head_estimates",
    "head_moments",
    "head_weights",
    "identical_heads",
    "layer_reduction",
    "linear_plus_sine",
    "nadaraya_watson",
    "orthogonal_heads",
    "over_designs",
    "softmax_weights",
    "transported_query",
    "wave",
]
