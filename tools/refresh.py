"""Re-execute notebooks in place and clean their metadata, so that a rerun changes nothing but results.

Usage: python tools/refresh.py book/01_problem.ipynb [...]
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}


def clean(notebook):
    """Drop what differs between machines: kernel names, versions, timings, widget state."""
    notebook.metadata = nbformat.from_dict({"kernelspec": KERNEL, "language_info": {"name": "python"}})
    for cell in notebook.cells:
        keep = ("tags", "mystnb")
        cell.metadata = nbformat.from_dict({k: v for k, v in cell.metadata.items() if k in keep})
    return notebook


def refresh(path):
    """Execute one notebook in its folder; write it back only if every cell ran."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=600, kernel_name="python3", record_timing=False, coalesce_streams=True,
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    client.execute()
    nbformat.write(clean(notebook), path)


def main(paths):
    for path in map(Path, paths):
        start = time.perf_counter()
        try:
            refresh(path)
        except CellExecutionError as error:
            sys.exit(f"{path}: {error}")
        print(f"{path}: {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
