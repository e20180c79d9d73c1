"""A chapter made from the template passes every test of form, holds its claims, and overwrites nothing."""

import json
import sys
from pathlib import Path

import pytest

from nwmha import reruns, template

sys.path.insert(0, str(Path(__file__).parent / "book"))
import form


def test_a_new_chapter_passes_all_checks_of_form(tmp_path):
    said = template.write(12, 'Heads of "glass": Δ', book=tmp_path)
    path = tmp_path / "12_heads_of_glass.ipynb"
    assert str(path) in said and "_toc.yml" in said
    notebook = json.loads(path.read_text(encoding="utf-8"))
    assert {check.__name__: check(notebook) for check in form.CHECKS if check(notebook)} == {}
    assert "9999" not in form.prose(notebook) and form.prose(notebook).startswith('# Heads of "glass": Δ\n')
    ledger = reruns.read_ledgers(path)[0]
    assert ledger["chapter"] == 12 and {c["status"] for c in ledger["claims"]} == {"held"}
    with pytest.raises(ValueError, match="be free, got 12; taken are 12"):
        template.write(12, "Another", book=tmp_path)


@pytest.mark.parametrize("number, title, word", [(0, "a", "number"), (100, "a", "number"), (5, "?", "title"),
                                                 (5, "a\nb", "title")])  # fmt: skip
def test_impossible_chapters_are_refused(tmp_path, number, title, word):
    with pytest.raises(ValueError, match=word):
        template.write(number, title, book=tmp_path)
    assert list(tmp_path.iterdir()) == []
