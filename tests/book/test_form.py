"""Every chapter has the form that the book promises, and every check of form finds a planted fault."""

import copy
import json
import re
from pathlib import Path

import form
import pytest

BOOK = Path(__file__).parents[2] / "book"
CHAPTERS = sorted(BOOK.glob("[0-9][0-9]_*.ipynb"))
LIMIT = 500_000  # bytes of a notebook, outputs included


@pytest.mark.parametrize("check", form.CHECKS, ids=lambda c: c.__name__)
@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem[:2])
def test_chapter(path, check):
    assert check(json.loads(path.read_text(encoding="utf-8"))) == []


@pytest.mark.parametrize("path", CHAPTERS, ids=lambda p: p.stem[:2])
def test_size(path):
    assert path.stat().st_size <= LIMIT


def test_every_source_claim_of_a_written_chapter_is_judged():
    import tomllib

    from nwmha.reruns import chapters, read_ledgers

    judged = {v["source"] for path in CHAPTERS for ledger in read_ledgers(path) for v in ledger["verdicts"]}
    claims = tomllib.loads((BOOK / "source_claims.toml").read_text(encoding="utf-8"))["claim"]
    due = {claim["id"] for claim in claims if claim["chapter"] in chapters(BOOK)}
    assert due <= judged <= {claim["id"] for claim in claims}


def test_every_citation_and_every_reference_between_pages_exists():
    keys = set(re.findall(r"^@\w+\{([^,]+),", (BOOK / "references.bib").read_text(encoding="utf-8"), flags=re.M))
    for path in CHAPTERS:
        text = form.prose(json.loads(path.read_text(encoding="utf-8")))
        cited = {key for group in re.findall(r"\{cite[^}]*\}`([^`]+)`", text) for key in group.split(",")}
        assert {key.strip() for key in cited} <= keys


# Planted faults ----------------------------------------------------------------------------------------


def sound():
    """The smallest notebook that passes every check."""
    exercise = ":::{exercise} E\n:label: ex-%d\n\nDo.\n:::\n\n:::{solution} ex-%d\n:class: dropdown\n\nDone.\n:::\n"
    texts = {title: f"## {title}\n\nProse." for title in form.SECTIONS}
    texts["Exercises"] += "\n\n" + "\n".join(exercise % (k, k) for k in range(6))
    parameters = "seed: int = 1  # seed\nfalse_alarm: float = 1e-3  # rate"
    claim = {
        "id": "a",
        "sentence": "s",
        "kind": "exact",
        "statistic": 0,
        "threshold": 0,
        "control": 1,
        "status": "held",
    }
    outputs = {
        "Parameters": [],
        "Numerical verification": [
            {"output_type": "display_data", "metadata": {}, "data": {"image/svg+xml": "<svg/>"}}
        ],
        "Verdict": [{"output_type": "display_data", "metadata": {}, "data": {form.MIME: {"claims": [claim]}}}],
    }
    cells = []
    for title, text in texts.items():
        cells.append({"cell_type": "markdown", "id": f"m{len(cells)}", "metadata": {}, "source": text})
        if title in outputs:
            number = 1 + sum(cell["cell_type"] == "code" for cell in cells)
            metadata = {"tags": ["parameters"]} if title == "Parameters" else {}
            if title == "Numerical verification":
                alt = "A curve that falls from the upper left to the lower right."
                metadata = {"mystnb": {"image": {"alt": alt}, "figure": {"caption": "It falls."}}}
            code = {"cell_type": "code", "id": f"c{number}", "metadata": metadata, "execution_count": number}
            cells.append({**code, "source": parameters if number == 1 else "x", "outputs": outputs[title]})
    return {"cells": cells}


def printed(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def code(notebook, k):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"][k]


def plant(notebook, fault):
    """Damage the sound notebook in one way."""
    first = notebook["cells"][0]
    claim = code(notebook, 2)["outputs"][0]["data"][form.MIME]["claims"][0]
    stream = {"output_type": "stream", "name": "stderr", "text": "warning at /root/x"}
    actions = {
        "order": lambda: code(notebook, 1).update(execution_count=7),
        "unexecuted": lambda: code(notebook, 1).update(execution_count=None),
        "error": lambda: code(notebook, 1)["outputs"].append({"output_type": "error"}),
        "stderr": lambda: code(notebook, 1)["outputs"].append(stream),
        "untyped": lambda: code(notebook, 0).update(source="seed = 1  # s\nfalse_alarm: float = 1e-3  # r"),
        "derived": lambda: code(notebook, 0).update(source="seed: int = 1  # s\nfalse_alarm: float = 2 * seed  # r"),
        "no seed": lambda: code(notebook, 0).update(source="false_alarm: float = 1e-3  # r"),
        "long cell": lambda: code(notebook, 1).update(source="x\n" * 26),
        "no prose": lambda: notebook["cells"].extend([copy.deepcopy(code(notebook, 1)) for _ in range(3)]),
        "no alt": lambda: code(notebook, 1)["metadata"]["mystnb"].pop("image"),
        "no caption": lambda: code(notebook, 1)["metadata"]["mystnb"].pop("figure"),
        "no section": lambda: first.update(source="Prose."),
        "number": lambda: first.update(source=first["source"] + " It is 0.25 wide."),
        "open solution": lambda: opened.update(source=opened["source"].replace(":class: dropdown\n", "")),
        "failed": lambda: claim.update(status="failed"),
        "no control": lambda: claim.pop("control"),
        "no ledger": lambda: code(notebook, 2).update(outputs=[]),
        "backticks": lambda: first.update(source=first["source"] + "\n\n```{note}\nx\n```"),
        "toggle": lambda: first.update(source=first["source"] + "\n\n:::{prf:proof}\n:class: dropdown\n:::"),
        "inline display": lambda: first.update(source=first["source"] + " so $$x$$ holds"),
        "ids": lambda: notebook["cells"][1].update(id=first["id"]),
        "path": lambda: code(notebook, 1)["outputs"].append(printed("/home/me/x")),
        "address": lambda: code(notebook, 1)["outputs"].append(printed("<f at 0x7f0011223344>")),
    }  # fmt: skip
    opened = next(cell for cell in notebook["cells"] if "{solution}" in form.source(cell))
    actions[fault]()


FAULTS = {
    "execution": ["order", "unexecuted", "error", "stderr"],
    "parameters": ["untyped", "derived", "no seed"],
    "cells": ["long cell", "no prose"],
    "figures": ["no alt", "no caption"],
    "sections": ["no section"],
    "numbers": ["number"],
    "exercises": ["open solution"],
    "ledger": ["failed", "no control", "no ledger"],
    "markup": ["backticks", "toggle", "inline display", "ids"],
    "portable": ["path", "address"],
}


@pytest.mark.parametrize("check", form.CHECKS, ids=lambda c: c.__name__)
def test_a_sound_notebook_passes(check):
    assert check(sound()) == []


@pytest.mark.parametrize("name, fault", [(name, fault) for name, faults in FAULTS.items() for fault in faults])
def test_a_planted_fault_is_found(name, fault):
    notebook = sound()
    plant(notebook, fault)
    assert getattr(form, name)(notebook) != []
