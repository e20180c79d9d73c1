"""Claims: sentences that can fail, each with an acceptance rule and a control that the rule must reject.

A rule maps (value, reference) to an :class:`nwmha.rules.Outcome`. A claim holds only if its rule accepts the claimed
quantity **and** rejects the control, a deliberately wrong quantity. So a check that cannot fail, fails.
"""

import html
from dataclasses import asdict, dataclass, field
from statistics import NormalDist

from nwmha import _check, rules

MIME = "application/vnd.nwmha.ledger+json"
VERDICTS = ("holds", "holds under hypotheses", "refuted", "open")


class ClaimFailed(AssertionError):
    """Raised when a chapter is closed with a claim that does not hold."""


@dataclass(frozen=True)
class Claim:
    """One line of the verdict table. ``reason`` says why a claim failed; it is empty if it held."""

    id: str
    sentence: str
    kind: str
    statistic: float
    threshold: float | list[float]
    control: float
    status: str
    reason: str = ""
    hypotheses: str = ""
    z: tuple[float, ...] = field(default=(), repr=False)

    @property
    def held(self):
        return self.status == "held"


class Ledger:
    """The claims of one chapter.

    ``tests`` is the number of z statistics that the chapter may use; it fixes, before any data are seen, the
    critical value Phi^-1(1 - false_alarm / (2 tests)) of every ``mean`` claim, so that the probability of
    any false alarm in the chapter is at most ``false_alarm`` (Bonferroni). Asking for more tests than
    declared is an error. All methods return the recorded :class:`Claim`.

    >>> ledger = Ledger(3, theorem="3.1", tests=10)
    >>> round(ledger.critical, 3)
    3.891
    >>> ledger.exact("E", "two and two are four", 2 + 2, 4, control=5).held
    True
    >>> ledger.exact("F", "a control that passes makes the claim fail", 2 + 2, 4, control=4).reason
    'control not rejected'
    """

    def __init__(self, chapter, *, theorem, tests, false_alarm=1e-3):
        self.chapter, self.theorem = _check.at_least("chapter", chapter, 1), str(theorem)
        self.tests = _check.at_least("tests", tests, 1)
        self.false_alarm = _check.positive("false_alarm", false_alarm)
        if self.false_alarm >= 1:
            raise ValueError(f"false_alarm must be below 1, got {false_alarm!r}")
        self.critical = NormalDist().inv_cdf(1 - self.false_alarm / (2 * self.tests))
        self.claims, self.verdicts, self.tests_used = [], [], 0

    def exact(self, id, sentence, left, right, *, control, hypotheses=""):
        """``left`` equals ``right`` exactly; ``control`` is a wrong right-hand side."""
        return self._record(id, sentence, "exact", rules.exact(left, right), rules.exact(left, control), hypotheses)

    def close(self, id, sentence, left, right, *, control, tolerance, hypotheses=""):
        """``left`` equals ``right`` within ``tolerance``; ``control`` is a wrong right-hand side."""
        found, wrong = (rules.close(left, side, tolerance=tolerance) for side in (right, control))
        return self._record(id, sentence, "close", found, wrong, hypotheses)

    def mean(self, id, sentence, value, standard_error, expected, *, control, hypotheses=""):
        """A Monte-Carlo mean has the expected value; ``control`` is a wrong expected value."""
        found, wrong = (rules.mean(value, standard_error, side, critical=self.critical) for side in (expected, control))
        if self.tests_used + len(found.scores) > self.tests:
            raise ValueError(f"tests must be at least {self.tests_used + len(found.scores)}, declared {self.tests}")
        claim = self._record(id, sentence, "mean", found, wrong, hypotheses)
        self.tests_used += len(found.scores)
        return claim

    def slope(self, id, sentence, x, y, *, interval, control, hypotheses=""):
        """The log-log slope of y against x lies in ``interval``; ``control`` is a wrong y."""
        found, wrong = (rules.slope(x, side, interval=interval) for side in (y, control))
        return self._record(id, sentence, "slope", found, wrong, hypotheses)

    def order(self, id, sentence, smaller, larger, *, control, margin=0.0, hypotheses=""):
        """``smaller`` lies below ``larger``; ``control`` is a pair (smaller, larger) that does not."""
        found, wrong = rules.order(smaller, larger, margin=margin), rules.order(*control, margin=margin)
        return self._record(id, sentence, "order", found, wrong, hypotheses)

    def paired(self, id, sentence, differences, *, control, z=5.0, hypotheses=""):
        """Differences are positive in mean; ``control`` holds differences that are not."""
        return self._record(
            id, sentence, "paired", rules.paired(differences, z=z), rules.paired(control, z=z), hypotheses
        )

    def judge(self, source, sentence, *, verdict, claims):
        """Give the verdict on a claim of the source paper, resting on recorded claims (ids)."""
        if verdict not in VERDICTS:
            raise ValueError(f"verdict must be one of {', '.join(VERDICTS)}, got {verdict!r}")
        known = {c.id: c for c in self.claims}
        missing = [id for id in claims if id not in known]
        if missing or not claims:
            raise ValueError(f"claims must name recorded claims, got {list(claims)!r}")
        status = "held" if all(known[id].held for id in claims) else "failed"
        self.verdicts.append(
            {"source": source, "sentence": sentence, "verdict": verdict, "claims": list(claims), "status": status}
        )

    def record(self):
        """The ledger as plain data, ready for JSON; numbers have 3 significant digits."""
        return {
            "chapter": self.chapter, "theorem": self.theorem, "false_alarm": self.false_alarm,
            "tests": self.tests, "critical": _digits(self.critical),
            "claims": [_plain(asdict(c)) for c in self.claims], "verdicts": list(self.verdicts),
        }  # fmt: skip

    def close_chapter(self):
        """Display the verdict table; raise :class:`ClaimFailed` if a claim failed or none was made."""
        if not self.claims:
            raise ClaimFailed("the ledger holds no claim")
        from IPython.display import display

        record = self.record()
        display({MIME: record, "text/html": _html(record), "text/plain": _text(record)}, raw=True)
        failed = [f"{c.id} ({c.reason})" for c in self.claims if not c.held]
        if failed:
            raise ClaimFailed(f"{len(failed)} of {len(self.claims)} claims failed: " + ", ".join(failed))

    def _record(self, id, sentence, kind, found, wrong, hypotheses):
        if any(c.id == id for c in self.claims):
            raise ValueError(f"id must be new in the chapter, got {id!r} again")
        reasons = ["claim rejected"] * (not found.accepted) + ["control not rejected"] * wrong.accepted
        status = "failed" if reasons else "held"
        claim = Claim(
            id, sentence, kind, found.statistic, found.threshold, wrong.statistic, status, " and ".join(reasons),
            hypotheses, found.scores,
        )  # fmt: skip
        self.claims.append(claim)
        return claim


def _digits(number, digits=3):
    return float(f"{number:.{digits}g}")


def _plain(claim):
    claim["statistic"], claim["control"] = _digits(claim["statistic"]), _digits(claim["control"])
    claim["z"] = [_digits(z) for z in claim["z"]]
    limit = claim["threshold"]
    claim["threshold"] = [_digits(v) for v in limit] if isinstance(limit, list) else _digits(limit)
    return claim


SIGNS = {"exact": "= {}", "close": "≤ {}", "mean": "≤ {}", "slope": "in {}", "order": "> {}", "paired": "> {}"}
HEADINGS = ("claim", "sentence", "rule", "statistic", "accepted if", "control", "verdict")


def _row(claim):
    limit = claim["threshold"]
    limit = "[{:g}, {:g}]".format(*limit) if isinstance(limit, list) else f"{limit:g}"
    verdict = claim["status"] + (f": {claim['reason']}" if claim["reason"] else "")
    sentence = claim["sentence"] + (f" [{claim['hypotheses']}]" if claim["hypotheses"] else "")
    return (
        claim["id"], sentence, claim["kind"], f"{claim['statistic']:g}", SIGNS[claim["kind"]].format(limit),
        f"{claim['control']:g}", verdict,
    )  # fmt: skip


def _html(record):
    rows = []
    for claim in record["claims"]:
        cells = zip(HEADINGS, _row(claim))
        columns = "".join(f'<td data-label="{name}">{html.escape(cell)}</td>' for name, cell in cells)
        rows.append(f'<tr class="{claim["status"]}">{columns}</tr>')
    head = "".join(f'<th scope="col">{name}</th>' for name in HEADINGS)
    return f'<table class="nwmha-ledger"><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table>'


def _text(record):
    rows = [HEADINGS, *(_row(c) for c in record["claims"])]
    return "\n".join(" | ".join(row) for row in rows)
