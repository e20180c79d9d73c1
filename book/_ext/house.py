"""The book's own Sphinx extension: the scoreboard, repairs of the built pages, notebooks that read well elsewhere.

Pages are repaired after the build because the faults are in other packages' templates. Every repair is a pure
function on the page's text and may be applied twice without harm.
"""

import html
import json
import re
import sys
import tomllib
from collections import Counter
from pathlib import Path

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
sys.path.insert(0, str(Path(__file__).parent))

from download import readable  # noqa: E402

from nwmha.reruns import chapters, read_ledgers  # noqa: E402

HEADINGS = ("Claim", "The source says", "Verdict", "The book says")
BADGES = {"holds": "✓", "holds under hypotheses": "◐", "refuted": "✗", "open": "?"}


# The scoreboard ---------------------------------------------------------------------------------------


def verdicts(book):
    """Map each source claim to (verdict entry, its claim records, chapter number), from the stored ledgers."""
    found = {}
    for number, path in chapters(book).items():
        for ledger in read_ledgers(path):
            records = {claim["id"]: claim for claim in ledger["claims"]}
            for entry in ledger["verdicts"]:
                found[entry["source"]] = (entry, [records[id] for id in entry["claims"]], number)
    return found


def scoreboard_row(claim, found, links):
    """One row of HTML: the claim, the badge, what is true instead, and how many claims it rests on."""
    where = links.get(claim["chapter"])
    chapter = f"Chapter {claim['chapter']}"
    chapter = f'<a href="{where}">{chapter}</a>' if where else chapter
    if claim["id"] not in found:
        badge, says, rests = '<span class="verdict none">not yet judged</span>', "Chapter not yet written.", ""
    else:
        entry, records, _ = found[claim["id"]]
        held = sum(record["status"] == "held" for record in records)
        verdict = entry["verdict"] if held == len(records) else "open"
        badge = f'<span class="verdict {verdict.split()[0]}">{BADGES[verdict]} {verdict}</span>'
        says, rests = html.escape(entry["sentence"]), f"<br><small>{held} of {len(records)} claims held</small>"
    return (
        f'<tr><th scope="row">{html.escape(claim["name"])}<br><small>{chapter}</small></th>'
        f'<td data-label="The source says">{html.escape(claim["text"])}</td>'
        f'<td data-label="Verdict">{badge}{rests}</td><td data-label="The book says">{says}</td></tr>'
    )


class Scoreboard(SphinxDirective):
    """The table of the source's claims with their verdicts; takes no argument."""

    def run(self):
        book = Path(self.env.srcdir) / "book"
        rows_file = book / "source_claims.toml"
        paths = chapters(book)
        for path in (rows_file, *paths.values()):
            self.env.note_dependency(str(path))
        claims = tomllib.loads(rows_file.read_text(encoding="utf-8"))["claim"]
        links = {number: f"{path.stem}.html" for number, path in paths.items()}
        found = verdicts(book)
        unknown = set(found) - {claim["id"] for claim in claims}
        if unknown:
            raise self.error(f"verdicts for unknown source claims: {', '.join(sorted(unknown))}")
        rows = "".join(scoreboard_row(claim, found, links) for claim in claims)
        head = "".join(f'<th scope="col">{heading}</th>' for heading in HEADINGS)
        table = f'<table class="scoreboard"><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        return [nodes.raw("", table, format="html")]


# Repairs of built pages --------------------------------------------------------------------------------


def unique_ids(page):
    """Number repeated ids (sphinx-proof gives one id to every box alike); the first keeps its name."""
    seen = Counter()

    def number(match):
        seen[match.group(1)] += 1
        count = seen[match.group(1)]
        return match.group(0) if count == 1 else f'id="{match.group(1)}--{count}"'

    return re.sub(r'\bid="([^"]+)"', number, page)


def accessible(page):
    """Names and roles that the theme gets wrong (found by axe)."""
    page = re.sub(r'(<button[^>]*search-button-field[^>]*?) aria-label="[^"]*"', r"\1", page)
    page = re.sub(r'(<button[^>]*theme-switch-button[^>]*?) aria-label="[^"]*"', r'\1 aria-label="Colour mode"', page)
    page = re.sub(r' role="(list|doc-biblioentry|doc-bibliography)"', "", page)
    page = re.sub(r"<th></th>", "<td></td>", page)
    return page.replace(
        '<div id="pst-primary-sidebar" class="bd-sidebar-primary bd-sidebar">',
        '<div id="pst-primary-sidebar" class="bd-sidebar-primary bd-sidebar" role="region" aria-label="Chapters">',
    )


def repair_pages(app, error):
    """Repair every built page and make the downloadable notebooks readable in plain Jupyter."""
    if error or app.builder.format != "html":
        return
    out = Path(app.outdir)
    for path in out.rglob("*.html"):
        page = path.read_text(encoding="utf-8")
        repaired = accessible(unique_ids(page))
        if repaired != page:
            path.write_text(repaired, encoding="utf-8")
    for path in (out / "_sources").rglob("*.ipynb"):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(readable(notebook), indent=1, ensure_ascii=False), encoding="utf-8")


def setup(app):
    app.add_directive("scoreboard", Scoreboard)
    app.connect("build-finished", repair_pages)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
