"""The form of a chapter. Each check maps a notebook (plain JSON data) to a list of faults."""

import ast
import re

SECTIONS = [
    "The question",
    "Parameters",
    "What the source claims",
    "The exact statement",
    "Proof",
    "Numerical verification",
    "Where it breaks",
    "What it means for real attention",
    "Exercises",
    "Verdict",
]
MIME = "application/vnd.nwmha.ledger+json"


def source(cell):
    return "".join(cell["source"])


def code_cells(notebook):
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def prose(notebook):
    return "\n\n".join(source(cell) for cell in notebook["cells"] if cell["cell_type"] == "markdown")


def outputs(notebook):
    return [output for cell in code_cells(notebook) for output in cell["outputs"]]


def execution(notebook):
    """Executed once, from top to bottom, without errors and without warnings."""
    counts = [cell["execution_count"] for cell in code_cells(notebook)]
    faults = [] if counts == list(range(1, len(counts) + 1)) else [f"execution counts {counts}"]
    faults += ["error output" for output in outputs(notebook) if output["output_type"] == "error"]
    return faults + ["stderr" for output in outputs(notebook) if output.get("name") == "stderr"]


def parameters(notebook):
    """One cell tagged parameters: typed scalars with a comment each, seed and false_alarm among them."""
    tagged = [cell for cell in code_cells(notebook) if "parameters" in cell["metadata"].get("tags", [])]
    if len(tagged) != 1:
        return [f"{len(tagged)} cells tagged parameters"]
    text = source(tagged[0])
    faults, names = [], set()
    for line, node in zip(text.splitlines(), ast.parse(text).body, strict=True):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.value, ast.Constant):
            faults.append(f"no typed scalar: {line}")
            continue
        names.add(node.target.id)
        if node.annotation.id not in ("int", "float", "bool", "str") or "#" not in line:
            faults.append(f"needs a type and a comment: {line}")
    return faults + [f"no parameter {name}" for name in ("seed", "false_alarm") if name not in names]


def cells(notebook):
    """Short code cells, one idea each, with prose before them."""
    lengths = [source(cell).strip().count("\n") + 1 for cell in code_cells(notebook)]
    faults = [f"code cell {k} has {n} lines" for k, n in enumerate(lengths, 1) if n > 25]
    if sorted(lengths)[len(lengths) // 2] > 10:
        faults.append("code cells too long on the whole")
    kinds = "".join(cell["cell_type"][0] for cell in notebook["cells"])
    return faults + (["three code cells in a row"] if "ccc" in kinds else [])


def figures(notebook):
    """Each figure has alternative text and a caption that is a sentence."""
    faults = []
    for cell in code_cells(notebook):
        drawn = any(kind.startswith("image/") for o in cell["outputs"] for kind in o.get("data", {}))
        if not drawn:
            continue
        settings = cell["metadata"].get("mystnb", {})
        alt = settings.get("image", {}).get("alt", "")
        caption = settings.get("figure", {}).get("caption", "")
        if len(alt) < 40 or not caption.rstrip().endswith((".", "?")):
            faults.append(f"figure without alternative text or caption: {source(cell)[:40]!r}")
    return faults


def sections(notebook):
    """The ten parts, in order."""
    found = re.findall(r"^## (.+)$", prose(notebook), flags=re.M)
    return [] if found == SECTIONS else [f"sections are {found}"]


def numbers(notebook):
    """No decimal typed in the prose: numbers come from glue or the ledger."""
    text = re.sub(r"```.*?```", "", prose(notebook), flags=re.S)
    text = re.sub(r"\{[\w:]+\}`[^`]*`|`[^`]*`|\$\$.*?\$\$|\]\([^)]*\)", "", text, flags=re.S)
    text = re.sub(r"\b(Theorem|Theorems|Definition|Proposition|Corollary|Section|and|to) \d\.\d", "", text)
    return [f"typed number {number}" for number in re.findall(r"(?<![\w.])\d*\.\d+", text)]


def exercises(notebook):
    """At least six exercises, each with a solution that starts hidden."""
    text = prose(notebook)
    labels = set(re.findall(r"\{exercise\}[^\n]*\n:label: ([\w-]+)", text))
    solutions = re.findall(r"\{solution\} ([\w-]+)\n((?::[\w-]+:.*\n)+)", text)
    hidden = {label for label, options in solutions if ":class: dropdown" in options}
    faults = [] if len(labels) >= 6 else [f"{len(labels)} exercises"]
    return faults + [f"no hidden solution of {label}" for label in sorted(labels - hidden)]


def ledger(notebook):
    """One ledger, every claim held, every control stated."""
    found = [output["data"][MIME] for output in outputs(notebook) if MIME in output.get("data", {})]
    if len(found) != 1 or not found[0]["claims"]:
        return [f"{len(found)} ledgers"]
    keys = {"id", "sentence", "kind", "statistic", "threshold", "control", "status"}
    faults = [f"claim {c.get('id')} lacks a field" for c in found[0]["claims"] if not keys <= c.keys()]
    return faults + [f"claim {c['id']} failed" for c in found[0]["claims"] if c["status"] != "held"]


def markup(notebook):
    """Directives that read well in plain Jupyter and do not break the page."""
    text = prose(notebook)
    faults = ["directive in backticks"] if re.search(r"^`{3,}\{", text, flags=re.M) else []
    if re.search(r"\{prf:proof\}[^\n]*\n(:[\w-]+:.*\n)*:class: dropdown", text):
        faults.append("prf:proof with class dropdown")
    if re.search(r"[^\n]\$\$[^\n]|\S\n\$\$\n\S[^$]*\n\$\$\n\S", text):
        faults.append("$$ inside a paragraph")
    ids = [cell["id"] for cell in notebook["cells"]]
    return faults + (["cell ids repeat"] if len(set(ids)) < len(ids) else [])


def portable(notebook):
    """Nothing of the machine in the outputs, and a size that a page can carry."""
    text = str([{k: v for k, v in o.items() if k != "metadata"} for o in outputs(notebook)])
    faults = [f"path {p}" for p in re.findall(r"(?:/home/|/root/|/tmp/|/work/|C:\\)\S{0,30}", text)]
    return faults + [f"address {a}" for a in re.findall(r"0x[0-9a-f]{8,}", text)]


CHECKS = [execution, parameters, cells, figures, sections, numbers, exercises, ledger, markup, portable]
