"""For all of pytest: property tests repeat, and what strict nbval leaves out (notebooks are collected from book/)."""

import hypothesis

# The same examples on every machine. To look for new ones: pytest --hypothesis-profile=default.
hypothesis.settings.register_profile("repeatable", derandomize=True)
hypothesis.settings.load_profile("repeatable")


def pytest_collectstart(collector):
    """Compare everything but pictures and stderr: figures are checked by claims on the plotted arrays."""
    if hasattr(collector, "skip_compare"):
        picture = "application/papermill.record/image/"
        collector.skip_compare += ("stderr", "image/svg+xml", picture + "svg+xml", picture + "png")
