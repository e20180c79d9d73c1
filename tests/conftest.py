"""Shared fixtures: seeded generators, and what strict nbval leaves out."""

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(20260501)


def pytest_collectstart(collector):
    """Compare everything but pictures and stderr: figures are checked by claims on the plotted arrays."""
    if hasattr(collector, "skip_compare"):
        picture = "application/papermill.record/image/"
        collector.skip_compare += ("stderr", "image/svg+xml", picture + "svg+xml", picture + "png")
