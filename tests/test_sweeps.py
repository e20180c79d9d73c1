"""Sweeps: requests are checked before anything runs, finished runs are never lost or repeated, engines agree."""

import json
import os
import subprocess
import sys
from concurrent.futures import Executor, Future

import nbformat
import pytest

from nwmha import __main__ as command
from nwmha import kernels, progress, reruns, sweeps, tables


class Here(Executor):
    """Runs every task at once, in this process and thread, with the function given."""

    def __init__(self, task=sweeps.execute):
        self.task, self.calls = task, []

    def submit(self, _, *arguments):
        future = Future()
        self.calls.append(arguments)
        try:
            future.set_result(self.task(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future


def stub(chapter, values, code, fresh, book):
    """A result as a worker returns it, without a kernel."""
    status = "held" if values["n"] == 4 else "failed"
    claim = {"id": "A", "kind": "mean", "statistic": 1.5, "threshold": 3.0, "control": 9.0, "status": status}
    return {
        "chapter": chapter, "parameters": values, "code": code, "status": status, "error": "", "seconds": 0.5,
        "claims": [{**claim, "reason": "", "z": [0.5, -1.5]}], "notebook": "{}",
    }  # fmt: skip


@pytest.fixture
def kernel():
    yield
    kernels.close()


def without_seconds(results):
    return [{**row, "seconds": None} for row in tables.rows(results)]


# Planning -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "chapters, assignments, seeds, message",
    [
        ([7], ["m=1"], 0, "unknown parameter 'm'"),
        ([7], ["sigme=1,2"], 0, "did you mean sigma"),
        ([7], ["n=1,2.5"], 0, "n must be an integer, got '2.5'"),
        ([7], ["n="], 0, "n must be an integer"),
        ([7], ["n=1,"], 0, "n must be an integer"),
        ([7], ["name=a,,b"], 0, "name must have different values, none of them empty"),
        ([7], ["n=1,1"], 0, "n must have different values"),
        ([7], ["n=1", "n=2"], 0, "n is given twice"),
        ([7], ["n"], 0, "name=value"),
        ([7], ["seed=1,2"], 3, "seeds must be"),
        ([7], [], -1, "seeds must be"),
        ([], [], 0, "chapters must be"),
        ([7, 7], [], 0, "chapters must be"),
        ([8], [], 0, "chapter must be one of 7"),
    ],
)
def test_bad_requests_are_refused_before_anything_runs(book, chapters, assignments, seeds, message):
    with pytest.raises(ValueError, match=message):
        sweeps.plan(chapters, assignments, seeds=seeds, book=book)


def test_a_plan_is_the_whole_grid_with_names_that_last(book):
    runs = sweeps.plan([7], ["n=4,8", "sigma=1,2"], seeds=3, book=book)
    assert len(runs) == 12 == len({run.key for run in runs})
    assert {(r.values["n"], r.values["sigma"], r.values["seed"]) for r in runs} == {
        (n, s, k) for n in (4, 8) for s in (1.0, 2.0) for k in (1, 2, 3)
    }
    assert all(run.values["name"] == "a" for run in runs)  # defaults are part of the name
    again = sweeps.plan([7], ["sigma=2,1", "n=8,4"], seeds=3, book=book)
    assert {run.key for run in again} == {run.key for run in runs}


def test_the_name_changes_with_the_code(book, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    notebook = nbformat.read(book / "07_toy.ipynb", as_version=4)
    keys = {sweeps.plan([7], [], book=book)[0].key}
    for source in ("changed = 1", "changed = 2"):
        notebook.cells[1].source += f"\n{source}"
        folder = other / source[-1]
        folder.mkdir()
        nbformat.write(notebook, folder / "07_toy.ipynb")
        keys.add(sweeps.plan([7], [], book=folder)[0].key)
    (other / "1" / "data").mkdir()
    (other / "1" / "data" / "table.csv").write_text("1")
    sweeps.code_version.cache_clear()
    keys.add(sweeps.plan([7], [], book=other / "1")[0].key)
    assert len(keys) == 4


# Running ------------------------------------------------------------------------------------------------


def test_held_failed_and_refused_runs_are_all_kept(book, tmp_path):
    runs = sweeps.plan([7], ["n=4,9", "sigma=1,3"], book=book)
    seen = []
    with progress.executor(2) as pool:
        results = sweeps.sweep(runs, tmp_path, executor=pool, report=lambda run, r: seen.append(r["status"]), book=book)
    statuses = {(r["parameters"]["n"], r["parameters"]["sigma"]): r["status"] for r in results}
    assert statuses == {(4, 1.0): "held", (4, 3.0): "refused", (9, 1.0): "failed", (9, 3.0): "refused"}
    assert sorted(seen) == ["failed", "held", "refused", "refused"]
    for result in results:
        notebook = nbformat.read(result["notebook"], as_version=4)
        text = json.dumps(notebook)
        assert ("Traceback" in text) == (result["status"] != "held")
    rows = tables.rows(results)
    assert [row["claim"] for row in rows if row["status"] == "refused"] == [None, None]
    assert len(rows) == 4 and {row["p_n"] for row in rows} == {4, 9}
    nothing = Here()
    assert sweeps.sweep(runs, tmp_path, executor=nothing, book=book) == results and nothing.calls == []
    loaded = sweeps.load(tmp_path)
    assert [r["parameters"]["n"] for r in loaded] == [4, 4, 9, 9] and {r["run"] for r in loaded} == {
        r.key for r in runs
    }


def test_a_warm_kernel_gives_what_a_fresh_one_gives(book, tmp_path, kernel):
    notebook = nbformat.read(book / "07_toy.ipynb", as_version=4)
    notebook.cells[1].source = """import matplotlib as mpl, torch, sys
print("left" in globals(), mpl.rcParams["font.size"], torch.get_default_dtype())
left = mpl.rcParams["font.size"] = 20
torch.set_default_dtype(torch.float64)
seed"""
    nbformat.write(notebook, book / "07_toy.ipynb")
    outputs = []
    for name, fresh in (("one", False), ("two", False), ("three", True)):
        target = tmp_path / f"{name}.ipynb"
        reruns.execute(book / "07_toy.ipynb", target, {"seed": 2}, fresh=fresh)
        cells = json.loads(target.read_text())["cells"]
        outputs.append([(c.get("execution_count"), c.get("outputs")) for c in cells])
    assert outputs[0] == outputs[1] == outputs[2]
    assert "False 10.0 torch.float32" in json.dumps(outputs[1])
    assert [count for count, _ in outputs[1]] == [1, 2, 3]


def test_a_chapter_that_kills_its_kernel_is_not_finished(book, tmp_path, kernel):
    notebook = nbformat.read(book / "07_toy.ipynb", as_version=4)
    notebook.cells[1].source = "import os\nif n == 9:\n    os._exit(1)\n" + notebook.cells[1].source
    nbformat.write(notebook, book / "07_toy.ipynb")
    sweeps.code_version.cache_clear()
    runs = sweeps.plan([7], ["n=9,4"], book=book)
    with open(tmp_path / "log", "w") as stream, progress.Progress(runs, tmp_path, stream) as bar:
        results = sweeps.sweep(runs, tmp_path, executor=Here(), report=bar.report, book=book)
    assert [r["status"] for r in results] == ["held"]  # the next run had a kernel again
    assert bar.broken == 1 and "not executed: DeadKernelError" in (tmp_path / "log").read_text()
    assert [call[1]["n"] for call in _second_try(runs, tmp_path, book)] == [9]


def _second_try(runs, folder, book):
    again = Here(stub)
    sweeps.sweep(runs, folder, executor=again, book=book)
    return again.calls


def test_a_worker_with_other_code_refuses(book):
    with pytest.raises(RuntimeError, match="the worker has other code"):
        sweeps.execute(7, {}, "0" * 12, book=book)


# Kill and resume ----------------------------------------------------------------------------------------

SCRIPT = """
import os, signal, sys
from pathlib import Path
from nwmha import progress, sweeps
book, folder, moment = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]

def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    runs = sweeps.plan([7], ["n=4,9", "sigma=1,3"], seeds=2, book=book)
    count = iter(range(100))
    report = lambda *_: killed() if moment == "between" and next(count) == 2 else None
    rename = os.rename
    if moment == "write":
        os.rename = lambda *names: killed() if next(count) == 2 else rename(*names)
    with progress.executor(2) as pool:
        sweeps.sweep(runs, folder, executor=pool, report=report, book=book)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, write_book):
    """A toy book, a command line that sweeps it, and what the sweep gives when nothing goes wrong."""
    book = write_book(tmp_path_factory.mktemp("undisturbed"))
    (book / "script.py").write_text(SCRIPT)
    command_line = [sys.executable, str(book / "script.py"), str(book)]
    subprocess.run([*command_line, str(book / "whole"), "never"], check=True)
    results = sweeps.load(book / "whole")
    assert len(results) == 8
    return book, command_line, results


@pytest.mark.parametrize("moment", ["between", "write"])
def test_killed_and_resumed_equals_undisturbed(undisturbed, tmp_path, moment):
    _, command_line, whole = undisturbed
    ended = subprocess.run([*command_line, str(tmp_path), moment], check=False)
    assert ended.returncode == -9
    kept = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "runs").glob("[0-9]*")}
    assert len(kept) == (3 if moment == "between" else 2)
    assert len(list((tmp_path / "runs").glob(".*"))) == (moment == "write")
    subprocess.run([*command_line, str(tmp_path), "never"], check=True)
    assert without_seconds(sweeps.load(tmp_path)) == without_seconds(whole)
    assert list((tmp_path / "runs").glob(".*")) == []
    for name, time in kept.items():  # what was finished has not been touched
        assert (tmp_path / "runs" / name).stat().st_mtime_ns == time


def test_dask_gives_the_table_of_processes(undisturbed, tmp_path):
    distributed = pytest.importorskip("distributed", reason="no dask.distributed: pip install -e '.[cluster]'")
    book, _, whole = undisturbed
    runs = sweeps.plan([7], ["n=4,9", "sigma=1,3"], seeds=2, book=book)
    settings = dict(n_workers=2, threads_per_worker=1, dashboard_address=None, local_directory=str(tmp_path))
    with distributed.LocalCluster(**settings) as cluster, progress.executor(1, cluster.scheduler_address) as pool:
        sweeps.sweep(runs, tmp_path / "dask", executor=pool, book=book)
    assert without_seconds(sweeps.load(tmp_path / "dask")) == without_seconds(whole)


# Telling ------------------------------------------------------------------------------------------------


def stubbed(book, tmp_path, assignments=("n=4,9",), seeds=2):
    runs = sweeps.plan([7], list(assignments), seeds=seeds, book=book)
    return runs, sweeps.sweep(runs, tmp_path, executor=Here(stub), book=book)


def test_the_table_is_read_back_as_it_was_written(book, tmp_path):
    import csv

    import pyarrow.parquet

    _, results = stubbed(book, tmp_path)
    parquet, text = tables.write(results, tmp_path, csv=True)
    table = pyarrow.parquet.read_table(parquet).to_pylist()
    assert table == [{**row} for row in tables.rows(results)]
    assert table[0]["z"] == [0.5, -1.5] and table[0]["threshold_high"] is None
    with open(text, newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == len(table) and lines[0]["z"] == "0.5 -1.5" and lines[0]["claim"] == "A"
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(ValueError, match="no finished run"):
        tables.write([], tmp_path)


def test_the_summary_counts_and_names_what_failed(book, tmp_path):
    _, results = stubbed(book, tmp_path)
    text = tables.summary(results)
    assert "chapter 7: 4 runs, 2 held, 2 failed" in text and "claims: 2 held, 2 failed" in text
    assert "failed: n=9 seed=2: A" in text and "8 z statistics: mean -0.500, standard deviation 1.000" in text
    assert "failed claims: 2" in text


def test_the_heat_map_shows_the_grid(book, tmp_path):
    _, results = stubbed(book, tmp_path, ["n=4,9", "sigma=1,2,3"])
    axes = tables.figure(results).axes
    assert [text.get_text() for text in axes[0].texts] == ["2 of\n2", "0 of\n2"] * 3
    assert axes[0].get_xlabel() == "n" and axes[0].get_ylabel() == "sigma"
    assert "24 values" in [text.get_text() for text in axes[1].get_legend().get_texts()]
    assert [path.name for path in tables.draw(results, tmp_path)] == ["chapter-07.svg"]


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_counts_on_a_terminal_and_in_a_log(book, tmp_path, terminal):
    import io

    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    runs, results = stubbed(book, tmp_path)
    stream = Stream()
    with progress.Progress(runs, tmp_path / "new", stream) as bar:
        for run, result in zip(runs, results):
            bar.report(run, result)
        bar.report(runs[0], RuntimeError("gone"))
    assert (bar.held, bar.failed, bar.broken) == (2, 2, 1)
    text = stream.getvalue()
    assert "chapter 7 n=9 seed=1: failed: 0 claims held, 1 failed" in text and "RuntimeError: gone" in text
    assert ("claims: 2 held, 2 failed" in text) == terminal == ("\r" in text)


def test_command_line(book, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reruns, "BOOK", book)
    folder = ["--folder", str(tmp_path / "out")]
    assert command.main(["sweep", "7", "-p", "sigme=1", *folder]) == 2
    assert "did you mean sigma" in capsys.readouterr().err and not (tmp_path / "out").exists()
    assert command.main(["sweep", "7", "--workers", "0", *folder]) == 2
    assert command.main(["summary", str(tmp_path / "out")]) == 2
    assert command.main(["sweep", "7", "--seeds", "2", "--workers", "1", "--csv", *folder]) == 0
    shown = capsys.readouterr()
    assert "chapter 7: 2 runs, 2 held" in shown.out and "[2/2] chapter 7 seed=" in shown.err
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"runs", "table.parquet", "table.csv", "chapter-07.svg"}
    assert command.main(["summary", str(tmp_path / "out")]) == 0
    assert command.main(["sweep", "7", "-p", "sigma=3", *folder]) == 1
    assert "refused: defaults: ValueError: sigma must be at most 2" in capsys.readouterr().out
    assert command.main(["summary", str(tmp_path / "out")]) == 1


def test_help_teaches(capsys):
    for words, expected in ((["sweep", "-h"], "finished runs twice"), (["rerun", "-h"], "Exit status")):
        with pytest.raises(SystemExit) as ended:
            command.main(words)
        assert ended.value.code == 0 and expected in " ".join(capsys.readouterr().out.split())


def test_a_leftover_of_a_living_process_stays(tmp_path):
    store = tmp_path / "runs"
    alive, dead = store / f".{os.getppid()}-07-a", store / ".999999999-07-b"
    for path in (alive, dead):
        path.mkdir(parents=True)
    sweeps.sweep([], tmp_path, executor=Here())
    assert alive.exists() and not dead.exists()
