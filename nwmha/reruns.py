"""Run one chapter with other parameters, and read back what its ledger says (grids of parameters: sweeps).

A chapter is a notebook with one cell tagged ``parameters``. Names and types are checked before anything
runs, because papermill itself accepts a misspelt name in silence and runs the old value.
"""

import ast
import difflib
import json
from dataclasses import dataclass
from pathlib import Path

from nwmha import kernels
from nwmha.claims import MIME

BOOK = Path(__file__).resolve().parents[1] / "book"
TYPES = {"int": int, "float": float, "bool": bool, "str": str}


@dataclass(frozen=True)
class Parameter:
    """One parameter of a chapter: its name, type, default value and the comment beside it."""

    name: str
    type: type
    default: int | float | bool | str
    help: str


@dataclass(frozen=True)
class Rerun:
    """An executed chapter: where it is kept, its ledgers, and the error that ended it (empty: none)."""

    notebook: Path
    ledgers: list[dict]
    error: str

    @property
    def held(self):
        """True if the chapter ran to its end and every claim of at least one ledger held."""
        claims = [claim for ledger in self.ledgers for claim in ledger["claims"]]
        return not self.error and bool(claims) and all(claim["status"] == "held" for claim in claims)


def chapters(book=BOOK):
    """Map chapter numbers to notebooks, read off the file names (``03_ensemble_decomposition.ipynb``)."""
    return {int(path.name[:2]): path for path in sorted(Path(book).glob("[0-9][0-9]_*.ipynb"))}


def chapter_path(chapter, book=BOOK):
    """Path of a chapter's notebook; ``ValueError`` names the chapters that exist."""
    known = chapters(book)
    if chapter not in known:
        raise ValueError(f"chapter must be one of {', '.join(map(str, known))}, got {chapter}")
    return known[chapter]


def parameters(path):
    """The parameters of a notebook, by name, read by papermill from the cell tagged ``parameters``."""
    from papermill import inspect_notebook

    found = {}
    for name, entry in inspect_notebook(str(path)).items():
        default = ast.literal_eval(entry["default"])
        kind = TYPES.get(entry["inferred_type_name"], type(default))
        found[name] = Parameter(name, kind, kind(default), entry["help"])
    return found


def parse(assignments, known):
    """Turn ``["n=128", "sigma=0.5"]`` into typed values, or raise ``ValueError``.

    >>> n = Parameter("n", int, 64, "sample size")
    >>> parse(["n=128"], {"n": n})
    {'n': 128}
    """
    return {name: typed(name, text, known) for name, text in assigned(assignments)}


def assigned(assignments):
    """Names and texts of ``["n=128", ...]``; a text without name or "=", or a name given twice, is refused."""
    seen = set()
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        if not equals or not name:
            raise ValueError(f"a parameter is given as name=value, got {assignment!r}")
        if name in seen:
            raise ValueError(f"{name} is given twice")
        seen.add(name)
        yield name, text


def typed(name, text, known):
    """The text of a parameter as a value of its type; ``ValueError`` names the nearest known parameter or the type."""
    if name not in known:
        near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}? " if near else ""
        raise ValueError(f"unknown parameter {name!r}: {hint}The chapter knows {', '.join(known)}")
    kind = known[name].type
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        value = kind(text)
    except (ValueError, KeyError):
        raise ValueError(f"{name} must be {_article(kind)}, got {text!r}") from None
    if kind is float and not abs(value) < float("inf"):
        raise ValueError(f"{name} must be finite, got {text!r}")
    return value


def _article(kind):
    return {int: "an integer", float: "a number", bool: "true or false", str: "a text"}[kind]


def rerun(chapter, values, *, folder, book=BOOK):
    """Execute a chapter with the given parameter values; the executed notebook is kept in ``folder``.

    ``values`` maps names to values of the right type (see :func:`parse`). A chapter that raises is kept too,
    with its traceback. Returns :class:`Rerun`.
    """
    source = chapter_path(chapter, book)
    known = parameters(source)
    for name, value in values.items():
        if name not in known:
            raise ValueError(f"unknown parameter {name!r}: the chapter knows {', '.join(known)}")
        if type(value) is not known[name].type:
            raise ValueError(f"{name} must be {_article(known[name].type)}, got {value!r}")
    settings = "_".join(f"{name}={value}" for name, value in values.items()).replace("/", "-")
    target = Path(folder) / (source.stem + (f"__{settings}" if settings else "") + ".ipynb")
    target.parent.mkdir(parents=True, exist_ok=True)
    return execute(source, target, values, fresh=True)


def execute(source, target, values, *, fresh=False):
    """Execute a notebook with checked values, in a fresh kernel or this worker's warm one. Returns :class:`Rerun`."""
    from papermill import PapermillExecutionError

    error = ""
    try:
        kernels.run(source, target, values, folder=Path(source).parent, fresh=fresh)
    except PapermillExecutionError as failure:
        error = f"{failure.ename}: {failure.evalue}"
    return Rerun(target, read_ledgers(target), error)


def read_ledgers(path):
    """All ledgers stored in an executed notebook, as plain data (see :meth:`nwmha.claims.Ledger.record`)."""
    # The notebook format is JSON: reading it as such keeps this usable where nbformat is not installed.
    notebook = json.loads(Path(path).read_text(encoding="utf-8"))
    outputs = [o for cell in notebook["cells"] for o in cell.get("outputs", [])]
    return [o["data"][MIME] for o in outputs if MIME in o.get("data", {})]


def summary(result):
    """A few lines that say what held and what did not."""
    claims = [claim for ledger in result.ledgers for claim in ledger["claims"]]
    failed = [c for c in claims if c["status"] != "held"]
    lines = [f"{len(claims) - len(failed)} of {len(claims)} claims held"]
    lines += [f"  failed: {c['id']} ({c['reason']}): {c['sentence']}" for c in failed]
    if result.error:
        lines.append(f"the chapter stopped: {result.error}")
    return "\n".join([*lines, f"executed notebook: {result.notebook}"])
