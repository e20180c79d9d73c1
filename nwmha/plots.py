"""House style and the few figures that recur. Matplotlib is imported when a figure is made, not before."""

COLOURS = {  # Okabe and Ito's palette: distinct for colour-blind readers and in print
    "bias": "#0072B2", "variance": "#E69F00", "covariance": "#D55E00", "truth": "#222222",
    "head": "#56B4E9", "ensemble": "#009E73", "control": "#CC79A7", "muted": "#7F7F7F",
}  # fmt: skip
CYCLE = ("bias", "covariance", "ensemble", "control", "head", "variance")


def house_style():
    """Set the book's figure style and, in a notebook, vector output that is the same in every run."""
    import matplotlib as mpl

    mpl.rcParams.update({
        "figure.figsize": (7.0, 3.6), "figure.dpi": 100, "figure.facecolor": "white",
        "figure.constrained_layout.use": True,
        "font.size": 10, "axes.titlesize": 10.5, "axes.titleweight": "bold", "axes.titlelocation": "left",
        "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True, "axes.axisbelow": True,
        "grid.color": "#E6E6E6", "grid.linewidth": 0.7, "lines.linewidth": 1.8, "legend.frameon": False,
        "axes.prop_cycle": mpl.cycler(color=[COLOURS[name] for name in CYCLE]),
        "svg.hashsalt": "nwmha", "svg.fonttype": "path",
    })  # fmt: skip
    from IPython import get_ipython

    if get_ipython() is not None:
        from matplotlib_inline.backend_inline import set_matplotlib_formats

        # No date and no bounding-box search: the same bytes in every run.
        set_matplotlib_formats("svg", metadata={"Date": None}, bbox_inches=None)


def stacked_parts(ax, labels, parts):
    """Stacked bars of the parts of the mean squared error, one bar per label.

    ``parts`` maps "bias", "variance" and "covariance" to one value per label. Negative parts (a covariance
    may be negative) are stacked below zero. Returns ``ax``.
    """
    positions = range(len(labels))
    above, below = [0.0] * len(labels), [0.0] * len(labels)
    names = {"bias": "bias²", "variance": "variance", "covariance": "covariance"}
    for key, name in names.items():
        heights = [float(v) for v in parts[key]]
        if len(heights) != len(labels):
            raise ValueError(f"parts[{key!r}] must hold {len(labels)} values, got {len(heights)}")
        base = [a if v >= 0 else b for v, a, b in zip(heights, above, below)]
        ax.bar(positions, heights, bottom=base, width=0.62, color=COLOURS[key], label=name)
        above = [a + max(v, 0) for a, v in zip(above, heights)]
        below = [b + min(v, 0) for b, v in zip(below, heights)]
    ax.set_xticks(list(positions), labels)
    ax.set_ylim(bottom=1.08 * min(below), top=1.08 * max(above))
    ax.grid(axis="x", visible=False)
    return ax
