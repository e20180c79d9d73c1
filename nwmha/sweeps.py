"""Sweeps: chapters over a grid of parameters, on this machine's cores or on a cluster; finished runs are never lost.

One run is one papermill execution. Its result is a folder whose name is a hash of the chapter, all its parameters and
the version of the code. The folder appears whole or not at all, so a sweep that is killed continues where it
stopped, and nothing finished runs twice.
"""

import hashlib
import json
import os
import platform
import shutil
import tempfile
import time
from concurrent.futures import as_completed
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path

from nwmha import reruns

ENGINE = (
    "__main__",
    "kernels",
    "progress",
    "reruns",
    "sweeps",
    "tables",
    "template",
)  # modules that run chapters but compute nothing in them
LIBRARIES = ("numpy", "scipy", "scikit-learn", "sympy", "torch", "matplotlib")
FALSE_ALARM = 1e-6  # a chapter's probability of any false alarm, where the grid does not set it


@dataclass(frozen=True)
class Run:
    """One point of a sweep: chapter, all its parameters, version of the code, and the name made from them."""

    chapter: int
    values: dict
    code: str
    key: str


def plan(chapters, assignments, *, seeds=0, book=reruns.BOOK):
    """All runs of a grid, checked before anything runs.

    ``assignments`` are texts like ``"n=64,128"``; ``seeds`` adds ``seed`` from 1 to that number. Unknown names,
    wrong types, values given twice and empty grids raise ``ValueError``. Returns a list of :class:`Run`.
    """
    if not chapters or len(set(chapters)) < len(chapters):
        raise ValueError(f"chapters must be different numbers, at least one, got {list(chapters)}")
    return [run for chapter in chapters for run in _chapter_runs(chapter, assignments, seeds, book)]


def _chapter_runs(chapter, assignments, seeds, book):
    path = reruns.chapter_path(chapter, book)
    known = reruns.parameters(path)
    grid = parse_grid(assignments, known)
    if seeds < 0 or (seeds and "seed" in grid):
        raise ValueError(f"seeds must be a count above 0, and replaces -p seed=..., got {seeds}")
    if seeds:
        grid["seed"] = list(range(1, seeds + 1))
    grid = {"false_alarm": [FALSE_ALARM], **grid} if "false_alarm" in known else grid
    defaults = {name: parameter.default for name, parameter in known.items()}
    code = code_version(path)
    points = [{**defaults, **dict(zip(grid, point))} for point in product(*grid.values())]
    return [Run(chapter, values, code, _key(chapter, values, code)) for values in points]


def parse_grid(assignments, known):
    """Turn ``["n=64,128", "sigma=1"]`` into lists of typed values, or raise ``ValueError``.

    >>> parse_grid(["n=64,128"], {"n": reruns.Parameter("n", int, 64, "sample size")})
    {'n': [64, 128]}
    """
    grid = {}
    for name, texts in reruns.assigned(assignments):
        values = [reruns.typed(name, text.strip(), known) for text in texts.split(",")]
        if len(set(values)) < len(values) or "" in values:
            raise ValueError(f"{name} must have different values, none of them empty, got {texts!r}")
        grid[name] = values
    return grid


@cache
def code_version(path):
    """Twelve hexadecimal digits that change with the package's code, the chapter's cells, the data or a library."""
    package = Path(__file__).parent
    digest = hashlib.sha256(platform.python_version().encode())
    for library in LIBRARIES:
        digest.update(f"{library}={version(library)}".encode())
    for file in sorted(package.glob("*.py")):
        if file.stem not in ENGINE:
            digest.update(file.read_bytes())
    for file in sorted(f for f in (Path(path).parent / "data").rglob("*") if f.is_file()):
        digest.update(file.read_bytes())
    cells = json.loads(Path(path).read_text(encoding="utf-8"))["cells"]
    digest.update(json.dumps([cell["source"] for cell in cells if cell["cell_type"] == "code"]).encode())
    return digest.hexdigest()[:12]


def _key(chapter, values, code):
    text = json.dumps([chapter, sorted(values.items()), code])
    return f"{chapter:02d}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def varied(points):
    """Names of the parameters that differ between points (dictionaries); those that some points lack do not count."""
    points = list(points)
    shared = [name for name in points[0] if all(name in point for point in points)]
    return [name for name in shared if len({point[name] for point in points}) > 1]


# One run, in a worker ------------------------------------------------------------------------------------


def execute(chapter, values, code, fresh=False, book=reruns.BOOK):
    """Run one chapter; all a worker has to know travels in the arguments, all it found in the plain data it returns."""
    path = reruns.chapter_path(chapter, book)
    if code_version(path) != code:
        raise RuntimeError(f"the worker has other code than the sweep: {code_version(path)}, not {code}")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        result = reruns.execute(path, Path(folder) / "notebook.ipynb", values, fresh=fresh)
        notebook = result.notebook.read_text(encoding="utf-8")
    claims = [claim for ledger in result.ledgers for claim in ledger["claims"]]
    return {
        "chapter": chapter, "parameters": values, "code": code, "status": _status(result), "error": result.error,
        "seconds": round(time.perf_counter() - start, 3), "claims": claims, "notebook": notebook,
    }  # fmt: skip


def _status(result):
    if result.held:
        return "held"
    if result.error.startswith("ClaimFailed"):
        return "failed"
    return "refused" if result.error.startswith("ValueError") else "stopped"


# Many runs, from the folder's side -----------------------------------------------------------------------


def sweep(runs, folder, *, executor, report=lambda run, result: None, fresh=False, book=reruns.BOOK):
    """Run what is not finished yet on a ``concurrent.futures`` executor; results land in ``folder / "runs"``.

    ``report`` is called with each run and its result, or the exception of a run that could not be executed (a
    worker died, the machine is out of memory): such a run is not finished, and the next sweep tries it again.
    Returns the list of results of all ``runs`` that are finished.
    """
    store = Path(folder) / "runs"
    store.mkdir(parents=True, exist_ok=True)
    _drop_leftovers(store)
    todo = {run.key: run for run in runs if not (store / run.key).exists()}
    futures = {executor.submit(execute, run.chapter, run.values, run.code, fresh, book): run for run in todo.values()}
    try:
        for future in as_completed(futures):
            run, error = futures[future], future.exception()
            if error is None:
                _keep(store, run, future.result())
            report(run, error or read(store / run.key))
    except BaseException:
        for future in futures:
            future.cancel()
        raise
    return [read(store / run.key) for run in runs if (store / run.key).exists()]


def load(folder):
    """The results of all finished runs in a folder, in the order of chapter and parameters."""
    found = [read(path) for path in sorted((Path(folder) / "runs").glob("[0-9]*")) if path.is_dir()]
    return sorted(found, key=lambda result: (result["chapter"], json.dumps(sorted(result["parameters"].items()))))


def read(path):
    """One result: plain data with chapter, parameters, status, error, seconds, claims, and where the notebook is."""
    result = json.loads((path / "result.json").read_text(encoding="utf-8"))
    return {**result, "run": path.name, "notebook": str(path / "notebook.ipynb")}


def _keep(store, run, result):
    """Write a result so that it is there whole or not at all: into a hidden folder, to the disk, then renamed."""
    result = dict(result)
    partial = store / f".{os.getpid()}-{run.key}"
    partial.mkdir()
    for name, text in (("notebook.ipynb", result.pop("notebook")), ("result.json", json.dumps(result, indent=1))):
        with open(partial / name, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    try:
        os.rename(partial, store / run.key)
    except OSError:
        if not (store / run.key).exists():
            raise
        shutil.rmtree(partial)  # another sweep in the same folder was faster


def _drop_leftovers(store):
    """Remove what sweeps that were killed in the middle of a write have left."""
    for path in store.glob(".*-*"):
        owner = int(path.name[1:].split("-")[0])
        if owner == os.getpid() or not _alive(owner):
            shutil.rmtree(path, ignore_errors=True)


def _alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
