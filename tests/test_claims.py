"""The heart: rules, controls, error rates, records. A check that cannot fail must fail here."""

import json
import math
from fractions import Fraction

import numpy as np
import pytest
import sympy
from hypothesis import given
from hypothesis import strategies as st

from nwmha import ClaimFailed, Ledger, rules
from nwmha.claims import MIME, VERDICTS


@pytest.fixture
def ledger():
    return Ledger(3, theorem="3.1", tests=20)


# Rules --------------------------------------------------------------------------------------------


def test_exact_is_exact():
    x = sympy.Symbol("x")
    assert rules.exact((x + 1) ** 2, x**2 + 2 * x + 1).accepted
    assert not rules.exact((x + 1) ** 2, x**2 + 2 * x).accepted
    assert rules.exact([Fraction(1, 3), [2]], [Fraction(2, 6), [2]]).accepted
    assert rules.exact([1, 2, 3], [1, 5, 4]).statistic == 2
    for left, right in ((0.1 + 0.2, 0.3), (1, np.float64(1))):
        with pytest.raises(ValueError, match="use close"):
            rules.exact(left, right)
    with pytest.raises(ValueError, match="zip"):
        rules.exact([1, 2], [1])


def test_close_scales_with_the_reference_and_floors_the_record():
    assert rules.close(1e6 + 1e-7, 1e6, tolerance=1e-12).accepted
    assert not rules.close(1 + 1e-7, 1.0, tolerance=1e-12).accepted
    assert rules.close(1.0, 1.0, tolerance=1e-12).statistic == 1e-13
    assert rules.close([0.0, 3.0], [0.0, 1.0], tolerance=1e-12).statistic == 2
    with pytest.raises(ValueError, match="shape of right"):
        rules.close([1.0], [1.0, 1.0], tolerance=1)


def test_mean_is_a_z_test_per_entry():
    outcome = rules.mean([1.0, 2.0], 0.1, [1.1, 2.35], critical=3.0)
    assert not outcome.accepted and outcome.statistic == pytest.approx(3.5)
    assert outcome.scores == pytest.approx((-1.0, -3.5))
    with pytest.raises(ValueError, match="standard_error must be above 0"):
        rules.mean(1.0, 0.0, 1.0, critical=3.0)


def test_slope_recovers_an_exponent():
    x = np.geomspace(1, 1e4, 9)
    assert rules.slope(x, 3 * x**-0.8, interval=(-0.81, -0.79)).statistic == pytest.approx(-0.8)
    assert not rules.slope(x, x**-1.0, interval=(-0.81, -0.79)).accepted
    for y in (np.zeros(9), -x):
        with pytest.raises(ValueError, match="positive"):
            rules.slope(x, y, interval=(0, 1))


def test_order_is_strict_and_paired_needs_evidence(rng):
    assert rules.order([1, 2], [1.5, 2.1]).statistic == pytest.approx(0.1)
    assert not rules.order([1, 2], [1.5, 2]).accepted
    assert rules.paired(rng.normal(0.2, 1, 5000)).accepted
    assert not rules.paired(rng.normal(0.0, 1, 5000)).accepted
    assert not rules.paired(rng.normal(-0.2, 1, 5000)).accepted


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_no_rule_lets_nan_or_infinity_through(bad):
    calls = [
        lambda: rules.close(bad, 0.0, tolerance=1),
        lambda: rules.close(0.0, bad, tolerance=1),
        lambda: rules.mean(bad, 1.0, 0.0, critical=3),
        lambda: rules.mean(0.0, bad, 0.0, critical=3),
        lambda: rules.slope([1, 2, 3], [1, bad, 2], interval=(0, 1)),
        lambda: rules.order(bad, 1.0),
        lambda: rules.paired([bad, 1.0, 2.0]),
    ]
    for call in calls:
        with pytest.raises(ValueError, match="finite"):
            call()


# Controls ------------------------------------------------------------------------------------------


def test_every_kind_fails_if_its_control_passes(ledger):
    x = [1.0, 2.0, 4.0]
    claims = [
        ledger.exact("a", "s", 4, 4, control=4),
        ledger.close("b", "s", 1.0, 1.0, control=1.0 + 1e-14, tolerance=1e-12),
        ledger.mean("c", "s", 1.0, 0.1, 1.05, control=1.1),
        ledger.slope("d", "s", x, x, interval=(0.9, 1.1), control=x),
        ledger.order("e", "s", 0.0, 1.0, control=(0.0, 2.0)),
        ledger.paired("f", "s", [1.0, 1.1, 0.9, 1.0], control=[2.0, 2.1, 1.9, 2.0]),
    ]
    assert [c.reason for c in claims] == ["control not rejected"] * 6
    with pytest.raises(ClaimFailed, match="6 of 6"):
        ledger.close_chapter()


def test_both_reasons_are_named(ledger):
    claim = ledger.exact("a", "s", 4, 5, control=4)
    assert claim.reason == "claim rejected and control not rejected" and not claim.held


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.floats(-1e6, 1e6))
def test_a_claim_holds_iff_accepted_and_control_rejected(left, right, control):
    claim = Ledger(1, theorem="x", tests=1).close("a", "s", left, right, control=control, tolerance=1e-3)
    accepted = abs(left - right) <= 1e-3 * max(1, abs(right))
    rejected = abs(left - control) > 1e-3 * max(1, abs(control))
    assert claim.held == (accepted and rejected)


# Error rates ----------------------------------------------------------------------------------------


def test_critical_value_is_bonferroni():
    assert Ledger(3, theorem="3.1", tests=30).critical == pytest.approx(4.15, abs=0.01)
    assert Ledger(3, theorem="3.1", tests=1, false_alarm=0.05).critical == pytest.approx(1.96, abs=0.001)


def test_false_alarms_of_a_chapter_stay_within_the_budget():
    """20 000 chapters of 10 true claims each, at a familywise rate of 5 %: binomial, five standard errors."""
    chapters, tests, rate = 20_000, 10, 0.05
    z = np.random.default_rng(7).normal(size=(chapters, tests))
    alarms = 0
    critical = Ledger(1, theorem="x", tests=tests, false_alarm=rate).critical
    for row in z:
        alarms += not rules.mean(row, 1.0, 0.0, critical=critical).accepted
    exact = 1 - (1 - rate / tests) ** tests
    assert abs(alarms / chapters - exact) < 5 * math.sqrt(exact * (1 - exact) / chapters)
    assert exact <= rate


def test_whole_ledgers_over_many_seeds():
    """The same through the public interface: simulated data, closed-form expectation, wrong control."""
    failed = 0
    for seed in range(400):
        ledger = Ledger(1, theorem="x", tests=5, false_alarm=0.05)
        data = np.random.default_rng([seed, 1]).exponential(size=(5, 4000))
        error = data.std(axis=1, ddof=1) / math.sqrt(4000)
        claim = ledger.mean("m", "mean one", data.mean(axis=1), error, np.ones(5), control=np.full(5, 1.5))
        assert claim.control > 10
        failed += not claim.held
    assert failed <= 400 * 0.05 + 5 * math.sqrt(400 * 0.05)


def test_power_a_wrong_formula_is_caught(rng):
    data = rng.normal(1.0, 1.0, 10_000)
    ledger = Ledger(1, theorem="x", tests=1)
    assert not ledger.mean("m", "wrong", data.mean(), data.std() / 100, 1.1, control=2.0).held


def test_no_more_tests_than_declared():
    ledger = Ledger(1, theorem="x", tests=3)
    ledger.mean("a", "s", [0.0, 0.0], 1.0, [0.0, 0.0], control=[9.0, 9.0])
    with pytest.raises(ValueError, match="tests must be at least 4, declared 3"):
        ledger.mean("b", "s", [0.0, 0.0], 1.0, [0.0, 0.0], control=[9.0, 9.0])
    assert [c.id for c in ledger.claims] == ["a"]


# The record ----------------------------------------------------------------------------------------


def test_record_is_complete_plain_and_rounded(ledger):
    ledger.mean("m", "a mean", 1.23456789, 0.1, 1.2, control=5.0, hypotheses="iid")
    ledger.slope("s", "a slope", [1.0, 2.0, 4.0], [1.0, 2.0, 4.0], interval=(0.9, 1.1), control=[1.0, 1.0, 1.0])
    ledger.judge("3.1", "It holds.", verdict="holds", claims=["m", "s"])
    record = json.loads(json.dumps(ledger.record()))
    first, second = record["claims"]
    assert {"id", "sentence", "kind", "statistic", "threshold", "control", "status"} <= first.keys()
    assert first["statistic"] == 0.346 and first["z"] == [0.346] and first["hypotheses"] == "iid"
    assert second["threshold"] == [0.9, 1.1]
    assert record["verdicts"][0]["status"] == "held" and record["theorem"] == "3.1" and record["chapter"] == 3


def test_judge_refuses_what_does_not_rest_on_claims(ledger):
    ledger.exact("a", "s", 1, 2, control=3)
    for claims in ([], ["nope"]):
        with pytest.raises(ValueError, match="claims must name recorded claims"):
            ledger.judge("3.1", "s", verdict="holds", claims=claims)
    with pytest.raises(ValueError, match="verdict must be one of"):
        ledger.judge("3.1", "s", verdict="true", claims=["a"])
    ledger.judge("3.1", "s", verdict=VERDICTS[0], claims=["a"])
    assert ledger.verdicts[0]["status"] == "failed"  # a verdict cannot outlive a failed claim


def test_ids_are_unique(ledger):
    ledger.exact("a", "s", 1, 1, control=2)
    with pytest.raises(ValueError, match="id must be new"):
        ledger.exact("a", "t", 1, 1, control=2)


def test_an_empty_ledger_cannot_be_closed(ledger):
    with pytest.raises(ClaimFailed, match="no claim"):
        ledger.close_chapter()


def test_display_shows_the_table_before_it_raises(ledger, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    ledger.exact("a", "1 < 2 & <b>", 1, 2, control=3)
    with pytest.raises(ClaimFailed, match=r"a \(claim rejected\)"):
        ledger.close_chapter()
    assert set(shown[0]) == {MIME, "text/html", "text/plain"}
    assert "&lt;b&gt;" in shown[0]["text/html"] and 'class="failed"' in shown[0]["text/html"]
    assert "failed: claim rejected" in shown[0]["text/plain"]


@pytest.mark.parametrize("bad", [{"tests": 0}, {"tests": 2.5}, {"false_alarm": 0}, {"false_alarm": 1}, {"chapter": 0}])
def test_bad_settings_are_refused(bad):
    arguments = {"chapter": 1, "theorem": "x", "tests": 1, **bad}
    with pytest.raises(ValueError, match=next(iter(bad))):
        Ledger(**arguments)


def test_an_attained_bound_is_recorded_without_rounding_error():
    assert rules.order(1.0, 1.0 - 1e-16, margin=-1e-12) == rules.Outcome(0.0, -1e-12, True)
    assert rules.order(1.0, 1.0 + 1e-16).accepted is False
    assert rules.order(0.0, 1e-8).statistic == 1e-8
