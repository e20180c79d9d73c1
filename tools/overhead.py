"""What a rerun costs beside the chapter's own arithmetic: fresh kernel, warm kernel, bare cells; medians and ratios.

Usage: python tools/overhead.py [CHAPTER] [REPEATS]

Bare: the chapter's code cells, one after the other, in a process that has imported everything and draws no picture.
"""

import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(name, "1")
os.environ["MPLBACKEND"] = "agg"


def bare(path, repeats):
    """Seconds for all code cells, imports loaded by a first pass that does not count."""
    import warnings

    import nbformat
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance(colors="nocolor")
    os.chdir(path.parent)
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code"]
    seconds = []
    for _ in range(repeats + 1):
        shell.reset()
        start = time.perf_counter()
        with open(os.devnull, "w") as nowhere, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            kept, sys.stdout = sys.stdout, nowhere
            for cell in cells:
                shell.run_cell(cell).raise_error()
            sys.stdout = kept
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds[1:])


def through(path, repeats, *, fresh):
    """Seconds for a whole rerun through papermill; the start of the warm kernel does not count."""
    from nwmha import kernels

    seconds = []
    with tempfile.TemporaryDirectory() as folder:
        for _ in range(repeats + (not fresh)):
            start = time.perf_counter()
            kernels.run(path, Path(folder) / "run.ipynb", {}, folder=path.parent, fresh=fresh)
            seconds.append(time.perf_counter() - start)
    kernels.close()
    return statistics.median(seconds[not fresh :])


def main(chapter=2, repeats=5):
    from nwmha import reruns

    path = reruns.chapter_path(chapter)
    fresh, warm = through(path, repeats, fresh=True), through(path, repeats, fresh=False)
    alone = bare(path, repeats)
    print(f"chapter {chapter}, medians of {repeats}: bare {alone:.2f} s")
    for name, value in (("fresh kernel", fresh), ("warm kernel", warm)):
        print(f"{name}: {value:.2f} s, {value / alone:.2f} times bare, overhead {value - alone:.2f} s")
    print(f"overhead, warm / fresh: {(warm - alone) / (fresh - alone):.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
