"""Reruns: parameters are read and checked before anything runs; what held and what failed is told."""

import pytest

from nwmha import __main__ as command
from nwmha import reruns


def test_parameters_are_read_with_type_default_and_help(book):
    known = reruns.parameters(book / "07_toy.ipynb")
    assert known["n"] == reruns.Parameter("n", int, 4, "sample size")
    assert [(p.type, p.default) for p in known.values()] == [
        (int, 4),
        (float, 1.0),
        (str, "a"),
        (bool, True),
        (int, 1),
    ]


@pytest.mark.parametrize(
    "assignments, message",
    [
        (["m=3"], "unknown parameter 'm'"),
        (["sigme=3"], "did you mean sigma"),
        (["n=3.5"], "n must be an integer, got '3.5'"),
        (["n=big"], "n must be an integer"),
        (["n="], "n must be an integer"),
        (["sigma=nan"], "sigma must be finite"),
        (["sigma=x"], "sigma must be a number"),
        (["fast=maybe"], "fast must be true or false"),
        (["n"], "name=value"),
        (["=3"], "name=value"),
        (["n=3", "n=4"], "n is given twice"),
    ],
)
def test_bad_assignments_are_refused(book, assignments, message):
    with pytest.raises(ValueError, match=message):
        reruns.parse(assignments, reruns.parameters(book / "07_toy.ipynb"))


def test_good_assignments_are_typed(book):
    known = reruns.parameters(book / "07_toy.ipynb")
    values = reruns.parse(["n=8", "sigma=2", "name=a=b", "fast=False"], known)
    assert values == {"n": 8, "sigma": 2.0, "name": "a=b", "fast": False}
    assert type(values["sigma"]) is float


def test_a_rerun_tells_held_from_failed_and_keeps_both(book, tmp_path):
    kept = tmp_path / "kept"
    held = reruns.rerun(7, {"seed": 3}, folder=kept, book=book)
    assert held.held and held.notebook.exists() and "1 of 1 claims held" in reruns.summary(held)
    failed = reruns.rerun(7, {"n": 9}, folder=kept, book=book)
    assert not failed.held and failed.error.startswith("ClaimFailed")
    assert "failed: A (claim rejected): n is four" in reruns.summary(failed)
    stopped = reruns.rerun(7, {"sigma": 3.0}, folder=kept, book=book)
    assert not stopped.held and "sigma must be at most 2" in stopped.error and not stopped.ledgers
    assert "Traceback" in stopped.notebook.read_text() and len(list(kept.iterdir())) == 3


def test_rerun_itself_checks_names_and_types(book, tmp_path):
    for values, message in (
        ({"m": 1}, "unknown parameter"),
        ({"n": 1.0}, "n must be an integer"),
        ({"n": True}, "n must"),
    ):
        with pytest.raises(ValueError, match=message):
            reruns.rerun(7, values, folder=tmp_path, book=book)
    with pytest.raises(ValueError, match="chapter must be one of 7, got 8"):
        reruns.rerun(8, {}, folder=tmp_path, book=book)


def test_command_line_exit_status(book, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(reruns, "chapter_path", lambda chapter: book / "07_toy.ipynb")
    ran = []
    outcomes = iter([True, False])

    def rerun(chapter, values, *, folder):
        ran.append(values)
        claim = {"id": "A", "sentence": "s", "status": "held" if next(outcomes) else "failed", "reason": "r"}
        return reruns.Rerun(tmp_path, [{"claims": [claim]}], "")

    monkeypatch.setattr(reruns, "rerun", rerun)
    assert command.main(["rerun", "7", "-p", "n=8", "-p", "sigma=0.5"]) == 0
    assert command.main(["rerun", "7"]) == 1
    assert command.main(["rerun", "7", "-p", "sigme=1"]) == 2
    assert "did you mean sigma" in capsys.readouterr().err
    assert ran == [{"n": 8, "sigma": 0.5}, {}]


def test_list_shows_parameters(book, monkeypatch, capsys):
    monkeypatch.setattr(reruns, "chapters", lambda: {7: book / "07_toy.ipynb"})
    assert command.main(["list"]) == 0
    shown = capsys.readouterr().out
    assert "7  toy" in shown and "n: int = 4" in shown and "sample size" in shown
