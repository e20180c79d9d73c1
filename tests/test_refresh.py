"""make refresh: executes in place, cleans metadata, leaves the file alone if a cell fails."""

import subprocess
import sys
from pathlib import Path

import nbformat

SCRIPT = Path(__file__).parents[1] / "tools" / "refresh.py"


def run(path, source):
    cell = nbformat.v4.new_code_cell(
        source, metadata={"tags": ["parameters"], "execution": {"iopub.execute_input": "t"}, "collapsed": True}
    )
    nbformat.write(nbformat.v4.new_notebook(cells=[cell], metadata={"authors": ["x"]}), path)
    return subprocess.run([sys.executable, str(SCRIPT), str(path)], capture_output=True, text=True)


def test_executes_and_cleans(tmp_path):
    path = tmp_path / "a.ipynb"
    assert run(path, "print(1); print(2)").returncode == 0
    notebook = nbformat.read(path, as_version=4)
    (cell,) = notebook.cells
    assert cell.execution_count == 1 and cell.outputs[0]["text"] == "1\n2\n" and len(cell.outputs) == 1
    assert cell.metadata == {"tags": ["parameters"]} and set(notebook.metadata) == {"kernelspec", "language_info"}


def test_failure_is_told_and_changes_nothing(tmp_path):
    path = tmp_path / "a.ipynb"
    result = run(path, "1 / 0")
    assert result.returncode != 0 and "ZeroDivisionError" in result.stderr
    assert nbformat.read(path, as_version=4).cells[0].outputs == []
