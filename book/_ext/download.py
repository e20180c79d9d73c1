"""Make a chapter's notebook readable where MyST is not understood (plain Jupyter, Colab)."""

import re

COUNTED = {
    "prf:theorem": "Theorem",
    "prf:definition": "Definition",
    "prf:lemma": "Lemma",
    "prf:proposition": "Proposition",
    "prf:corollary": "Corollary",
    "prf:remark": "Remark",
    "prf:example": "Example",
    "prf:proof": "Proof",
    "exercise": "Exercise",
    "note": "Note",
    "tip": "Tip",
    "important": "Important",
    "warning": "Warning",
}
FOLDED = {"solution", "dropdown", "admonition"}
OPENING = re.compile(r"^(:{3,})\{([\w:]+)\}\s*(.*)$")
OPTION = re.compile(r"^:[\w-]+:.*$")


def readable(notebook):
    """A copy of the notebook (plain JSON data) whose Markdown cells hold no directives and no roles."""
    values = glued(notebook)
    cells = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            text = "".join(cell["source"])
            cell = {**cell, "source": roles(directives(text), values)}
        cells.append(cell)
    return {**notebook, "cells": cells}


def glued(notebook):
    """Values that the notebook's code has glued, by name."""
    found = {}
    for cell in notebook["cells"]:
        for output in cell.get("outputs", []):
            name = output.get("metadata", {}).get("scrapbook", {}).get("name")
            text = output.get("data", {}).get("application/papermill.record/text/plain")
            if name and text is not None:
                found[name] = "".join(text).strip("'")
    return found


def directives(text):
    """Colon-fence directives become bold headings; solutions and dropdowns become <details>."""
    lines, stack, options = [], [], False
    for line in text.split("\n"):
        opening = OPENING.match(line)
        if opening:
            fence, kind, title = opening.groups()
            before, after = heading(kind, title)
            lines.append(before)
            stack.append((fence, after))
            options = True
        elif stack and line.strip() == stack[-1][0]:
            lines.append(stack.pop()[1])
        elif options and (OPTION.match(line) or not line.strip()):
            options = bool(OPTION.match(line))
        else:
            options = False
            lines.append(line)
    return "\n".join(lines)


def heading(kind, title):
    """What replaces the opening and the closing fence of a directive."""
    if kind in FOLDED:
        title = "Solution" if kind == "solution" else title
        return f"<details><summary><b>{title}</b></summary>\n", "\n</details>\n"
    if kind == "scoreboard":
        return "*(The scoreboard is on the first page of the built book.)*", ""
    name = COUNTED.get(kind, kind.capitalize())
    return f"**{name}" + (f" ({title})" if title else "") + ".**\n", ""


def roles(text, values):
    """Roles become plain text: glued values, citations, references, glossary terms."""

    def glue(match):
        name, _, spec = match.group(1).partition(":")
        value = values.get(name, match.group(0))
        if spec and name in values:
            try:
                return format(float(value), spec)
            except ValueError:
                return value
        return value

    text = re.sub(r"\{glue:text\}`([^`]+)`", glue, text)
    text = re.sub(r"\{cite(?::\w+)?\}`([^`]+)`", r"[\1]", text)
    text = re.sub(r"\{term\}`(?:([^`<]+?)\s*<[^`>]+>|([^`]+))`", lambda m: m.group(1) or m.group(2), text)
    return re.sub(r"\{[\w:]+\}`(?:([^`<]+?)\s*<[^`>]+>|([^`]+))`", lambda m: m.group(1) or f"*{m.group(2)}*", text)
