"""A new chapter from the template ``book/template/chapter.ipynb``: everything a theorem needs, as a worked example."""

import re
import subprocess
import sys

from nwmha import reruns

NEXT = """written and executed: {path}
Next: replace the sentences in italics and the example; add the file to _toc.yml, sources to book/references.bib;
run make refresh, make lint, make test. CONTRIBUTING.md says more."""


def write(number, title, *, book=reruns.BOOK):
    """Write and execute a new chapter; return what to do next, as text.

    ``number`` must be free and have one or two digits, ``title`` must hold a letter or digit and no line break, else
    ``ValueError``. Nothing that exists is changed.
    """
    slug = re.sub(r"[^a-z0-9]+", "_", title.lower()).strip("_")
    if not 1 <= number <= 99 or number in reruns.chapters(book):
        taken = ", ".join(map(str, reruns.chapters(book)))
        raise ValueError(f"number must lie between 1 and 99 and be free, got {number}; taken are {taken}")
    if not slug or not title.isprintable():
        raise ValueError(f"title must be one line with letters or digits, got {title!r}")
    # The placeholders are 9999 and TITLE, so that the template is itself a notebook that lints and runs.
    text = (reruns.BOOK / "template" / "chapter.ipynb").read_text(encoding="utf-8")
    escaped = title.replace("\\", "\\\\").replace('"', '\\"')  # the template is JSON
    path = book / f"{number:02d}_{slug}.ipynb"
    path.write_text(text.replace("9999", str(number)).replace("TITLE", escaped), encoding="utf-8")
    refresh = reruns.BOOK.parent / "tools" / "refresh.py"
    subprocess.run([sys.executable, str(refresh), str(path)], check=True, stdout=subprocess.DEVNULL)
    return NEXT.format(path=path)
