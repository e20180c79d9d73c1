"""What strict nbval leaves out. Here and not in tests/, because notebooks are collected from book/."""


def pytest_collectstart(collector):
    """Compare everything but pictures and stderr: figures are checked by claims on the plotted arrays."""
    if hasattr(collector, "skip_compare"):
        picture = "application/papermill.record/image/"
        collector.skip_compare += ("stderr", "image/svg+xml", picture + "svg+xml", picture + "png")
