from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from traceanalyzer.engine.rules.library import claim_order
from traceanalyzer.engine.rules.overrides import parse_overrides, with_overrides
from traceanalyzer.engine.rules.rule import Rule
from traceanalyzer.engine.rules.rulefile import read_rule
from traceanalyzer.engine.rules.scenario import Scenario
from traceanalyzer.engine.run import EngineResult, run_rules
from traceanalyzer.errors import ConfigError

RULE = """\
id: {id}
slug: test
title: A test
status: stable
category: input
after: [{after}]
why: to test
requires: {requires}
params:
  least: {{default: 5%, why: "to test"}}
  short: {{default: 20us, why: "to test"}}
from: gaps
where: {where}
group_by: [{group_by}]
metrics:
  lost: sum(duration)
  share: lost / window.duration
  typical: mean(duration)
  cause: top(cause, duration)
having: {having}
order_by: {order_by}
limit: {limit}
severity: {severity}
claims: [idle.input, idle.host_work]
saving: {{recoverable: {recoverable}, confidence: high{saving}}}
message: '{message}'
recommend: [{{pytorch: do this}}, {{when: lost > 1s, pytorch: do that}}]
references: [https://example.org]
tests: []
"""
DEFAULTS = {
    "id": "TST001",
    "after": "",
    "requires": "{tables: [gaps]}",
    "where": "duration > 0",
    "group_by": "rank, device",
    "having": "lost >= params.least * window.duration",
    "order_by": "null",
    "limit": "20",
    "severity": "[]",
    "recoverable": "lost",
    "saving": "",
    "message": "{gpu} loses {lost}, {share:percent}",
}
GAPS = [{"cause": "input", "duration": "30ms", "repeat": 10}]


def rule(**changes: str) -> Rule:
    made, problems = read_rule(RULE.format(**{**DEFAULTS, **changes}), "rules/test/TST001-test.yaml")
    assert made is not None and not problems, [str(problem) for problem in problems]
    return made


def run(*rules: Rule, overrides: Any = None, **given: Any) -> EngineResult:
    given = {"window": {"duration": "1s", "step_count": 10}, "gaps": GAPS} | given
    return run_rules(with_overrides(rules or [rule()], overrides or {}), Scenario(given))


def outcome(*rules: Rule, **given: Any) -> tuple[str, str | None]:
    first = run(*rules, **given).outcomes[0]
    return first.outcome, first.reason


def test_a_finding_in_full() -> None:
    (finding,) = run().findings
    assert finding.message == "GPU 0 loses 300 ms, 30%"
    assert (finding.severity, finding.confidence) == ("high", "high")
    assert (finding.scope.rank, finding.scope.device) == (0, 0)
    assert {name: (metric.value, metric.unit) for name, metric in finding.metrics.items()} == {
        "lost": (300_000_000, "ns"),
        "share": (0.3, "share"),
        "typical": (30_000_000, "ns"),
        "cause": ("input", None),
    }
    saving = finding.saving
    assert (saving.recoverable_ns, saving.recoverable_share) == (300_000_000, 0.3)
    assert (saving.speedup_ceiling, saving.per_step_ns) == (1.428571, 30_000_000)
    assert finding.recommend == [{"pytorch": "do this"}]
    assert [evidence.label for evidence in finding.evidence[:1]] == ["30 ms idle, input"]
    assert len(finding.evidence) == 10


def test_the_same_input_gives_the_same_bytes() -> None:
    first, second = (run() for _ in range(2))
    assert msgspec.json.encode(first.findings) == msgspec.json.encode(second.findings)
    assert first.claims.table() == second.claims.table()


@pytest.mark.parametrize(("lost", "level"), [("300ms", "high"), ("120ms", "medium"), ("50ms", "low")])
def test_the_ladder_is_on_the_share_of_the_window(lost: str, level: str) -> None:
    assert run(gaps=[{"cause": "input", "duration": lost}]).findings[0].severity == level


def test_a_rule_can_have_its_own_ladder() -> None:
    own = rule(severity="[{when: lost >= 90% * window.duration, level: high}, {when: recoverable > 1ns, level: low}]")
    assert run(own).findings[0].severity == "low"


def test_an_estimate_is_capped_by_the_claim_and_never_negative() -> None:
    assert run(rule(recoverable="50% * lost")).findings[0].saving.recoverable_ns == 150_000_000
    assert run(rule(recoverable="3 * lost")).findings[0].saving.recoverable_ns == 300_000_000
    assert run(rule(recoverable="lost - 1s")).findings[0].saving.recoverable_ns == 0


def test_who_claims_first() -> None:
    wide, narrow = rule(id="TST002", after="TST001"), rule(id="TST001", where='cause == "input"')
    gaps = [*GAPS, {"cause": "host_work", "duration": "100ms"}]
    result = run(*claim_order([wide, narrow]), gaps=gaps)
    assert [(f.rule, f.saving.recoverable_ns) for f in result.findings] == [
        ("TST001", 300_000_000),
        ("TST002", 100_000_000),
    ]
    assert result.findings[1].message.endswith("TST001 already accounts for 300 ms of this time.")
    assert result.findings[1].evidence[0].label == "100 ms idle, host work"
    lengths = result.claims.table().to_pandas().assign(ns=lambda c: c.end_ns - c.start_ns).groupby("rule").ns.sum()
    assert lengths.to_dict() == {"TST001": 300_000_000, "TST002": 100_000_000}


def test_the_heaviest_rows_are_shown_and_ties_keep_their_order() -> None:
    gaps = [{"cause": "input", "duration": f"{length}0ms"} for length in (1, 9, 5, 9, 2, 5, 9)]
    shown = run(rule(order_by="duration", limit="4"), gaps=gaps).findings[0].evidence
    assert [(e.end_ns - e.start_ns) // 10_000_000 for e in shown] == [9, 9, 9, 5]
    assert [e.start_ns for e in shown[:3]] == sorted(e.start_ns for e in shown[:3])


def test_a_rule_may_ask_for_what_is_left() -> None:
    rest = rule(id="TST002", after="TST001", having="unclaimed > 5% * window.duration")
    assert [f.rule for f in run(rule(), rest).findings] == ["TST001"]
    assert [o.outcome for o in run(rule(), rest).outcomes] == ["fired", "clean"]


def test_a_circle_of_after_is_refused() -> None:
    with pytest.raises(ConfigError, match="circle: TST001, TST002"):
        claim_order([rule(id="TST001", after="TST002"), rule(id="TST002", after="TST001")])
    with pytest.raises(ConfigError, match="has the id"):
        claim_order([rule(), rule()])


# Outcomes


def test_clean() -> None:
    assert outcome(gaps=[]) == ("clean", None)
    assert outcome(gaps=[{"cause": "input", "duration": "1ms"}]) == ("clean", None)


def test_not_applicable() -> None:
    needs = rule(requires="{tables: [api_calls], columns: {gaps: [draining]}}")
    assert outcome(needs, unavailable={"api_calls": "no API calls"}) == ("not_applicable", "no API calls")
    assert outcome(needs, unavailable={"gaps": "no gaps"}) == ("not_applicable", "no gaps")
    assert outcome(needs) == (
        "not_applicable",
        "not recorded for gaps: a host wait drained the GPU: nothing was queued when it returned",
    )
    assert outcome(needs, gaps=[])[0] == "clean"


def health(code: str, severity: str = "low", rank: int = 0) -> dict[str, Any]:
    return {"code": code, "severity": severity, "message": f"{code} is bad", "rank": rank}


def test_could_not_judge() -> None:
    careful = rule(requires="{healthy: [TRC002, TRC008]}")
    assert outcome(careful, health=[health("TRC008")]) == ("could_not_judge", "TRC008 is bad")
    assert outcome(careful, health=[health("TRC008", "info"), health("TRC001")])[0] == "fired"


def test_one_sick_rank_is_left_out_and_the_others_are_judged() -> None:
    careful = rule(requires="{healthy: [TRC002]}")
    windows = [{"rank": 0, "duration": "1s"}, {"rank": 1, "duration": "1s"}]
    gaps = [{"cause": "input", "duration": "300ms", "rank": rank} for rank in (0, 1)]
    result = run(careful, window=windows, gaps=gaps, health=[health("TRC002", rank=1)])
    assert [finding.scope.rank for finding in result.findings] == [0]
    assert result.outcomes[0].reason == "some ranks were left out: TRC002 is bad"


ABSTAIN = '{tables: [gaps], abstain: [{when: cause == "host_work", reason: the loader was not recorded}]}'


def test_a_rule_abstains_on_what_its_rows_say() -> None:
    unsure = [{"cause": "host_work", "duration": "30ms", "repeat": 10}]
    assert outcome(rule(requires=ABSTAIN)) == ("fired", None)
    assert outcome(rule(requires=ABSTAIN), gaps=unsure) == ("could_not_judge", "the loader was not recorded")


def test_one_gpu_that_cannot_be_judged_is_said_beside_the_finding_of_another() -> None:
    window = [{"device": 0}, {"device": 1}]
    gaps = [
        {"cause": cause, "device": device, "duration": "300ms"} for device, cause in enumerate(("input", "host_work"))
    ]
    result = run(rule(requires=ABSTAIN), window=window, gaps=gaps)
    assert [finding.scope.device for finding in result.findings] == [0]
    assert (result.outcomes[0].outcome, result.outcomes[0].reason) == ("fired", "the loader was not recorded")


def test_the_share_of_the_top_name() -> None:
    names = (("a", "200ms"), ("b", "100ms"), ("a", "60ms"), (None, "40ms"))
    gaps = [{"cause": "input", "range_name": name, "duration": length} for name, length in names]
    (finding,) = run(rule(message="{top_share(range_name, duration):percent}"), gaps=gaps).findings
    assert finding.message == "65%"


def test_health_lowers_confidence() -> None:
    careful = rule(requires="{weakened_by: [TRC003]}")
    lowered = run(careful, health=[health("TRC003")]).findings[0]
    assert lowered.confidence == "medium" and lowered.confidence_reasons[0].startswith(
        "lowered by the health of the trace"
    )
    assert run(careful, health=[health("TRC003", rank=5)]).findings[0].confidence == "high"


def test_what_the_rows_say_lowers_confidence_too() -> None:
    doubt = rule(saving=", less_sure_when: typical < 10ms")
    assert [run(doubt, gaps=gaps).findings[0].confidence for gaps in (GAPS, [{**GAPS[0], "duration": "9ms"}])] == [
        "high",
        "medium",
    ]
    (sure,), (unsure,) = run(doubt).findings, run(doubt, gaps=[{**GAPS[0], "duration": "9ms"}]).findings
    assert sure.confidence_reasons == [] and "typical < 10ms" in unsure.confidence_reasons[0]


def test_a_rule_can_say_that_nothing_is_predicted() -> None:
    (finding,) = run(rule(saving=", unpredicted: nobody knows")).findings
    assert (finding.saving.predicted_speedup, finding.saving.prediction_note) == (None, "nobody knows")


def test_a_broken_rule_is_an_error_and_leaves_no_claim() -> None:
    # The product overflows only on real rows, after the first GPU's group has claimed.
    broken = rule(id="TST001", group_by="rank, device, gap", having="lost * 9000000000 * 9000000000 > 1ns")
    unknown = rule(id="TST002", where="nothing > 1ns")
    result = run(broken, unknown, rule(id="TST003"))
    assert [o.outcome for o in result.outcomes] == ["error", "error", "fired"]
    assert "overflow" in (result.outcomes[0].reason or "")
    assert "unknown column 'nothing'" in (result.outcomes[1].reason or "")
    assert [f.saving.recoverable_ns for f in result.findings] == [300_000_000]


def test_too_many_groups_are_an_error() -> None:
    many = rule(group_by="rank, device, gap", having="true")
    gaps = [{"cause": "input", "duration": "1us", "repeat": 1001}]
    assert outcome(many, gaps=gaps)[0] == "error"


def test_a_table_that_fails_is_that_rules_error() -> None:
    class Broken(Scenario):
        def table(self, name: str) -> pa.Table:
            if name == "gaps":
                raise RuntimeError("no such file")
            return super().table(name)

    result = run_rules([rule()], Broken({}))
    assert (result.outcomes[0].outcome, result.outcomes[0].reason) == ("error", "RuntimeError: no such file")


# Overrides


def test_overrides() -> None:
    assert run(overrides=parse_overrides(["TST001.least=40%"])).findings == []
    assert run(overrides={"TST001": {"least": 0.4}}).findings == []


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("TST009.least=1%", "did you mean 'TST001'"),
        ("TST001.leest=1%", "did you mean 'least'"),
        ("TST001.least=20us", "is a share, but '20us' is a time"),
        ("TST001.short=20", "is a time, but '20' is a plain number"),
        ("TST001.short=soon", "is a time, but 'soon' is a text"),
        ("TST001", "write it as"),
    ],
)
def test_wrong_overrides(setting: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        run(overrides=parse_overrides([setting]))


def test_names_in_messages_are_data() -> None:
    nasty = "{lost} {__import__('os')} </script>"
    shown = rule(message='{coalesce(top(range_name, duration), "")}')
    gaps = [{"cause": "input", "duration": "300ms", "range_name": nasty}]
    assert run(shown, gaps=gaps).findings[0].message == nasty
