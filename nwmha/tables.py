"""What sweeps found: a tidy table (one row per run and claim), a summary in words, and a figure per chapter."""

import math
import os
from pathlib import Path
from statistics import NormalDist

from nwmha.plots import COLOURS
from nwmha.sweeps import varied

STATUSES = ("held", "failed", "refused", "stopped")
CLAIM = {"id": "claim", "kind": "kind", "statistic": "statistic", "threshold": "threshold", "control": "control",
         "status": "claim_status", "reason": "reason", "z": "z"}  # fmt: skip


def rows(results):
    """One row per run and claim; a run that stopped before its ledger has one row without a claim.

    Columns: chapter, run, code, status, error, seconds of the run; its parameters as ``p_name``; claim, kind,
    statistic, threshold (``threshold_high`` too for an interval), control, claim_status, reason, z.
    """
    table = []
    for result in results:
        run = {name: result[name] for name in ("chapter", "run", "code", "status", "error", "seconds")}
        run |= {f"p_{name}": value for name, value in sorted(result["parameters"].items())}
        for claim in result["claims"] or [{}]:
            row = {column: claim.get(field) for field, column in CLAIM.items()}
            limit = row["threshold"]
            low, high = limit if isinstance(limit, list) else (limit, None)
            table.append({**run, **row, "threshold": low, "threshold_high": high, "z": row["z"] or []})
    return table


def write(results, folder, *, csv=False):
    """Write ``table.parquet`` (and ``table.csv``, z joined by spaces) into ``folder``; return the paths."""
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    table = rows(results)
    if not table:
        raise ValueError(f"there is no finished run in {folder}")
    names = list(dict.fromkeys(name for row in table for name in row))
    columns = {name: [row.get(name) for row in table] for name in names}
    paths = [Path(folder) / "table.parquet"]
    _replace(paths[0], lambda path: pa.parquet.write_table(pa.table(columns), path))
    if csv:
        columns["z"] = [" ".join(map(str, z)) for z in columns["z"]]
        paths.append(Path(folder) / "table.csv")
        _replace(paths[1], lambda path: pa.csv.write_csv(pa.table(columns), path))
    return paths


def _replace(path, write):
    partial = path.with_name(f".{os.getpid()}-{path.name}")
    write(partial)
    os.replace(partial, path)


def scores(results):
    """All z statistics of the claims, in one list: N(0, 1) each if the claims are true."""
    return [z for result in results for claim in result["claims"] for z in claim["z"]]


def summary(results):
    """Text: per chapter what ran, held, failed and was refused; then the z statistics against N(0, 1)."""
    lines = [line for chapter in sorted({r["chapter"] for r in results}) for line in _chapter(chapter, results)]
    z = scores(results)
    if z:
        beyond = sum(abs(value) > NormalDist().inv_cdf(0.975) for value in z) / len(z)
        mean = sum(z) / len(z)
        spread = math.sqrt(sum((value - mean) ** 2 for value in z) / len(z))
        lines.append(f"{len(z)} z statistics: mean {mean:.3f}, standard deviation {spread:.3f} (expected 0 and 1),")
        lines.append(f"  beyond the two-sided 5 % point: {100 * beyond:.2f} %; largest {max(map(abs, z)):.2f}")
    budget = sum(r["parameters"].get("false_alarm", 0) for r in results if r["claims"])
    failed = sum(c["status"] != "held" for r in results for c in r["claims"])
    lines.append(f"failed claims: {failed}; false alarms to expect if all claims are true: at most {budget:.2g}")
    return "\n".join(lines)


def _chapter(chapter, results):
    results = [r for r in results if r["chapter"] == chapter]
    count = {status: sum(r["status"] == status for r in results) for status in STATUSES}
    claims = [c for r in results for c in r["claims"]]
    failed = sum(c["status"] != "held" for c in claims)
    yield f"chapter {chapter}: {len(results)} runs, " + ", ".join(f"{count[s]} {s}" for s in STATUSES if count[s])
    yield f"  claims: {len(claims) - failed} held, {failed} failed"
    if len({r["code"] for r in results}) > 1:
        yield "  runs of different versions of the code: compare them with care"
    names = varied(r["parameters"] for r in results)
    for result in results:
        if result["status"] != "held":
            wrong = [f"{c['id']} ({c['reason']})" for c in result["claims"] if c["status"] != "held"]
            what = ", ".join(wrong) or result["error"].splitlines()[0]
            where = " ".join(f"{name}={result['parameters'][name]}" for name in names) or "defaults"
            yield f"  {result['status']}: {where}: {what}; {result['notebook']}"


def figure(results):
    """Heat map of the share of claims that held over the two first varied parameters; histogram of z. One chapter."""
    from matplotlib.figure import Figure

    fig = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = fig.subplots(1, 2)
    _heat_map(left, results)
    _histogram(right, scores(results))
    return fig


def _histogram(ax, z):
    edges, grid = [k / 4 for k in range(-20, 21)], [k / 20 for k in range(-100, 101)]
    if z:
        ax.hist(z, edges, weights=[4 / len(z)] * len(z), color=COLOURS["head"], label=f"{len(z)} values")
    ax.plot(grid, [NormalDist().pdf(v) for v in grid], color=COLOURS["truth"], label="N(0, 1)")
    ax.set(title="z statistics of the claims", xlabel="z", ylabel="density")
    ax.legend(frameon=False)


def _heat_map(ax, results):
    import numpy as np

    names = [n for n in varied(r["parameters"] for r in results) if n not in ("seed", "false_alarm")][:2]
    across, up = (sorted({r["parameters"][name] for r in results}) for name in names) if len(names) == 2 else (
        sorted({r["parameters"][name] for name in names for r in results}) or [""], [""])  # fmt: skip
    share = np.full((len(up), len(across)), np.nan)
    for i, j in np.ndindex(share.shape):
        place = dict(zip(names, (across[j], up[i])))
        here = [r for r in results if all(r["parameters"][name] == value for name, value in place.items())]
        held = [c["status"] == "held" for r in here for c in r["claims"]]
        share[i, j] = np.mean(held) if held else np.nan
        ax.text(j, i, f"{sum(held)} of\n{len(held)}" if held else "refused", ha="center", va="center", fontsize=8)
    ax.imshow(share, vmin=0, vmax=1, cmap="RdYlGn", origin="lower", aspect="auto", alpha=0.6)
    ax.set_xticks(range(len(across)), [f"{v}" for v in across])
    ax.set_yticks(range(len(up)), [f"{v}" for v in up])
    ax.set(title=f"chapter {results[0]['chapter']}: claims that held")
    ax.set(xlabel=names[0] if names else "", ylabel=names[1] if len(names) > 1 else "")


def draw(results, folder):
    """Save the figure of every chapter as ``chapter-NN.svg`` in ``folder``; return the paths."""
    paths = []
    for chapter in sorted({r["chapter"] for r in results}):
        paths.append(Path(folder) / f"chapter-{chapter:02d}.svg")
        fig = figure([r for r in results if r["chapter"] == chapter])
        _replace(paths[-1], lambda path, fig=fig: fig.savefig(path, format="svg"))
    return paths
