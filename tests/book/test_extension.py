"""The book's Sphinx extension: repairs are idempotent, downloads readable, the scoreboard told from ledgers."""

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "book" / "_ext"))
house = pytest.importorskip("house")
download = pytest.importorskip("download")

PAGE = '<section id="proof"></section><div id="proof-content"></div><div id="proof-content"></div><tr><th></th></tr>'


def test_repairs_are_idempotent_and_leave_first_ids_alone():
    once = house.accessible(house.unique_ids(PAGE))
    assert once.count('id="proof-content"') == 1 and 'id="proof-content--2"' in once and 'id="proof"' in once
    assert "<td></td>" in once
    assert house.accessible(house.unique_ids(once)) == once


def test_download_reads_well_in_plain_jupyter():
    text = (
        "::::{admonition} Proof of Theorem 3.1\n:class: dropdown\n\nBecause $x$.\n\n:::{prf:lemma} Small\n:label: l\n\n"
        "It is {glue:text}`v:.2f` {cite:p}`a,b`, a {term}`claim`, see {prf:ref}`the lemma <l>`.\n:::\n::::"
    )
    data = {"application/papermill.record/text/plain": "0.12345"}
    output = {"output_type": "display_data", "metadata": {"scrapbook": {"name": "v"}}, "data": data}
    cells = [{"cell_type": "markdown", "source": text}, {"cell_type": "code", "source": "x", "outputs": [output]}]
    result = download.readable({"cells": cells})["cells"][0]["source"]
    assert ":::" not in result and "{" not in result and ":label:" not in result
    for part in (
        "<details><summary><b>Proof of Theorem 3.1</b>",
        "**Lemma (Small).**",
        "0.12 [a,b], a claim",
        "the lemma",
    ):
        assert part in result
    assert result.count("</details>") == 1


CLAIM = {"id": "3.1", "name": "Theorem 3.1", "text": "It <splits>.", "chapter": 3}


def found(status):
    entry = {"source": "3.1", "sentence": "True & exact.", "verdict": "holds", "claims": ["a"]}
    return {"3.1": (entry, [{"id": "a", "status": status}], 3)}


def test_scoreboard_row():
    row = house.scoreboard_row(CLAIM, found("held"), {3: "03_x.html"})
    assert "It &lt;splits&gt;." in row and "True &amp; exact." in row and 'href="03_x.html"' in row
    assert "holds" in row and "1 of 1 claims held" in row


def test_a_verdict_does_not_survive_a_failed_claim():
    row = house.scoreboard_row(CLAIM, found("failed"), {})
    assert 'class="verdict open"' in row and "0 of 1 claims held" in row


def test_unwritten_chapters_say_so():
    assert "Chapter not yet written" in house.scoreboard_row(CLAIM, {}, {})


def test_verdicts_are_read_from_the_notebooks(tmp_path):
    ledger = {"claims": [{"id": "a", "status": "held"}], "verdicts": [{**found("held")["3.1"][0]}]}
    data = {"application/vnd.nwmha.ledger+json": ledger}
    notebook = {"cells": [{"cell_type": "code", "outputs": [{"data": data}]}, {"cell_type": "markdown"}]}
    (tmp_path / "03_x.ipynb").write_text(json.dumps(notebook), encoding="utf-8")
    entry, records, number = house.verdicts(tmp_path)["3.1"]
    assert entry["verdict"] == "holds" and records[0]["id"] == "a" and number == 3
