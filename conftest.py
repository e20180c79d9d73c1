"""For all of pytest: property tests repeat, what strict nbval leaves out, and notebooks that need trained networks."""

import json
from functools import cache

import hypothesis
import pytest

# The same examples on every machine. To look for new ones: pytest --hypothesis-profile=default.
hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")


def pytest_collectstart(collector):
    """Compare everything but pictures and stderr: figures are checked by claims on the plotted arrays."""
    if hasattr(collector, "skip_compare"):
        picture = "application/papermill.record/image/"
        collector.skip_compare += ("stderr", "image/svg+xml", picture + "svg+xml", picture + "png")


@cache
def _needs_weights(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return any("weights" in cell["metadata"].get("tags", []) for cell in cells)


def pytest_collection_modifyitems(items):
    """Skip the cells of notebooks with a cell tagged "weights" where a trained network is not installed."""
    from nwmha.networks import missing

    reason = "; ".join(missing())
    for item in items if reason else []:
        if item.path.suffix == ".ipynb" and _needs_weights(item.path):
            item.add_marker(pytest.mark.skip(reason=f"{item.path.name}: {reason}"))
