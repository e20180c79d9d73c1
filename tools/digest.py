"""Digest of a sweep for the page "Rerun and extend": counts, z statistics in bins, machine and versions.

Usage: python tools/digest.py FOLDER    (writes book/records/sweep.json)
"""

import json
import platform
import sys
from datetime import date
from importlib.metadata import version
from pathlib import Path

import numpy as np

from nwmha import reruns, sweeps, tables

WIDTH, END = 0.25, 5.0  # bins of the z statistics


def chapter_digest(results):
    """Counts of one chapter's runs and claims, seconds, the false alarms to expect, and the grid."""
    claims = [claim for result in results for claim in result["claims"]]
    names = sweeps.varied(result["parameters"] for result in results)
    return {
        "runs": len(results),
        **{status: sum(r["status"] == status for r in results) for status in tables.STATUSES},
        "claims": len(claims),
        "claims_failed": sum(claim["status"] != "held" for claim in claims),
        "budget": sum(r["parameters"]["false_alarm"] for r in results if r["claims"]),
        "seconds": round(float(np.median([r["seconds"] for r in results])), 1),
        "grid": {name: sorted({r["parameters"][name] for r in results}) for name in names},
        "reasons": sorted({r["error"].splitlines()[0] for r in results if r["status"] in ("refused", "stopped")}),
    }


def digest(results):
    """Everything the page shows, as plain data."""
    z = np.array(tables.scores(results))
    counts, _ = np.histogram(z, np.arange(-END, END + WIDTH / 2, WIDTH))
    return {
        "date": date.today().isoformat(),
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "versions": {name: version(name) for name in sweeps.LIBRARIES},
        "chapters": {
            str(chapter): chapter_digest([r for r in results if r["chapter"] == chapter])
            for chapter in sorted({r["chapter"] for r in results})
        },
        "z": {
            "count": z.size, "mean": round(float(z.mean()), 4), "deviation": round(float(z.std()), 4),
            "beyond_5_percent": round(float(np.mean(np.abs(z) > 1.959964)), 5),
            "largest": round(float(np.abs(z).max()), 3), "width": WIDTH, "end": END, "counts": counts.tolist(),
        },
    }  # fmt: skip


if __name__ == "__main__":
    target = reruns.BOOK / "records" / "sweep.json"
    target.parent.mkdir(exist_ok=True)
    target.write_text(json.dumps(digest(sweeps.load(Path(sys.argv[1]))), indent=1) + "\n", encoding="utf-8")
    print(f"written: {target}")
