"""The form of a rule file, said once: which keys there are, in which order, what each holds and what it is for.

The reader takes the keys from here, editors the JSON Schema (`traceanalyzer rules schema`), and people the same words in it. What an
expression may say depends on its table, so that is left to the linter.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from traceanalyzer.catalog.declarations import rule_tables
from traceanalyzer.engine.advice import AUDIENCES
from traceanalyzer.engine.rules.scenarios import named_scenarios
from traceanalyzer.model.schema import TableSpec
from traceanalyzer.units import UNITS
from traceanalyzer.vocabulary.levels import CONFIDENCES, OUTCOMES, SEVERITIES
from traceanalyzer.vocabulary.lines import LEDGER_LINES
from traceanalyzer.vocabulary.losses import CATEGORIES

Schema = dict[str, Any]

STATUSES = ("preview", "stable", "deprecated")
EVIDENCE_LIMIT, MOST_EVIDENCE = 20, 1000
MOST_METRICS, MOST_TESTS = 200, 100
MOST_TEST_ROWS, MOST_ROWS_OF_TESTS = 100_000, 200_000
CODE = r"TRC\d{3}"
ID, SLUG = r"[A-Z]{3}\d{3}", r"[a-z0-9]+(-[a-z0-9]+)*"


def _text(about: str, **more: Any) -> Schema:
    return {"type": "string", "description": about, **more}


def _one_of(about: str, allowed: tuple[str, ...]) -> Schema:
    return {"enum": list(allowed), "description": about}


def _expression(about: str) -> Schema:
    return {"type": ["string", "number", "boolean"], "description": f"{about} (an expression)"}


def _literal(about: str) -> Schema:
    return {"type": ["string", "number", "boolean"], "description": about}


def _texts(about: str, **items: Any) -> Schema:
    return {"type": "array", "items": {"type": "string", **items}, "description": about}


def _object(about: str, keys: dict[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    form: Schema = {"type": "object", "properties": keys, "additionalProperties": False, "required": list(required)}
    return form | ({"description": about} if about else {})


def _list(about: str, items: Schema) -> Schema:
    return {"type": "array", "description": about, "items": items}


# Written out by `rule_schema`: tables may be declared until then.
_TABLE = {"$ref": "#/$defs/table"}
_CODES = {"pattern": f"^{CODE}$"}
ABSTAIN = {
    "when": _expression("condition on the metrics of a group"),
    "reason": _text("what the user reads when the rule could not judge"),
}
REQUIRES = {
    "tables": _texts("tables that must hold rows; without them the rule is not applicable", **_TABLE),
    "columns": {
        "type": "object",
        "description": "table: [columns] that must not be empty; otherwise the rule is not applicable",
        "additionalProperties": _texts("columns"),
        "propertyNames": _TABLE,
    },
    "healthy": _texts("health codes with which a rank cannot be judged", **_CODES),
    "weakened_by": _texts("health codes that lower the confidence of a finding by one", **_CODES),
    "abstain": _list("conditions under which a group cannot be judged", _object("", ABSTAIN, ("when", "reason"))),
}
PARAM = {
    "default": _literal("the threshold: 20us, 5%, 64KiB, a number or a text"),
    "unit": _one_of("the unit of a plain number", UNITS),
    "why": _text("why it is that and no other"),
}
SEVERITY = {
    "when": _expression("condition on the group; the first that holds decides"),
    "level": _one_of("severity", SEVERITIES),
}
SAVING = {
    "recoverable": _expression("the time that could be saved; never more than what is claimed"),
    "least": _expression(
        "where that is an estimate, the least that it may come to; with `most` it gives the range of the speedup"
    ),
    "most": _expression("and the most, for which time beside the claim may go too"),
    "confidence": _one_of("how sure that is on a healthy trace", CONFIDENCES),
    "less_sure_when": _expression("condition on the group that lowers the confidence by one"),
    "unpredicted": _text(
        "why replaying the timeline can say nothing of this cause; then there is no prediction, unless `replay` or `sooner` gives one"
    ),
    "replay": _expression(
        "for rules about the whole job, how it is played again: 'without', as if nobody had waited for the GPU of `scope`, or "
        "'balanced', as if all ranks of a group had equal work between its collectives; none for neither"
    ),
    "sooner": _expression(
        "where it is not played again: the time of a row that would be gone; the GPU that has most of it tells how much sooner the job "
        "would be done"
    ),
    "sooner_if": _text("what that supposes, as the beginning of a sentence; a template as `message` is"),
}
SCOPE = {
    "rank": _expression("a rank as the tables number it, or none"),
    "device": _expression("a device, or none"),
}
EXPECT = {
    "level": _one_of("severity of the first finding", SEVERITIES),
    "recoverable": _literal("what the first finding recovers, such as 600ms"),
    "says": _text("a part of its message"),
}
# What `expect` may say in one word.
EXPECTED = ("fires", *OUTCOMES[1:])
TEST = {
    "name": _text("what is tested"),
    # Written out by `rule_schema`, which spells every table.
    "given": {"description": "the rows of its tables, or the name of a scenario"},
    "expect": {
        "anyOf": [_one_of("the outcome", EXPECTED), _object("a finding, and what it is like", EXPECT)],
        "description": "an outcome, or what its first finding is like: level, recoverable and says, a part of the message",
    },
}
# In the order in which they stand in a file.
RULE: dict[str, Schema] = {
    "id": _text("three capital letters and three digits; choose letters of your own", pattern=f"^{ID}$"),
    "slug": _text("the name in lower-case words joined by hyphens", pattern=f"^{SLUG}$"),
    "title": _text("what is the matter, in a few words"),
    "status": _one_of("how settled the rule is", STATUSES),
    "category": _one_of("what the claimed time was lost to, in the words of the verdict", CATEGORIES),
    "after": _texts("ids of the rules that claim before this one", pattern=f"^{ID}$"),
    "why": _text("what is behind it: why this costs time"),
    "requires": _object("what the trace must hold, else the rule abstains", REQUIRES),
    "params": {
        "type": "object",
        "description": "thresholds by name, params.NAME in expressions; users may set others",
        "additionalProperties": _object("a threshold", PARAM, ("default", "why")),
    },
    "from": {"description": "the table whose rows the rule reads", **_TABLE},
    "where": _expression("which rows count: a condition on the columns of a row"),
    "group_by": _texts("columns; a finding is made for each group of rows, [rank, device] for one a GPU"),
    "metrics": {
        "type": "object",
        "description": "values of a group by name, from aggregates such as sum(duration); later ones may use earlier ones",
        "additionalProperties": _expression("a value of the group"),
    },
    "figures": {
        "type": "object",
        "description": "the metrics that people are shown beside a finding, in this order, each with words for it; without it, those "
        "that the message writes as they are",
        "additionalProperties": _text("what the figure is, in a few words"),
    },
    "having": _expression("when a group is a finding: a condition on its metrics"),
    "scope": _object(
        "the GPU that a finding is about, where it is another than that of its group, such as the one that others wait for",
        SCOPE,
    ),
    "order_by": _expression("which rows are shown first as evidence: a number of a row"),
    "limit": {
        "type": "integer",
        "minimum": 1,
        "maximum": MOST_EVIDENCE,
        "default": EVIDENCE_LIMIT,
        "description": "how many rows are shown as evidence",
    },
    "severity": _list(
        "a ladder of its own; without one the share of the window decides (info, low from 3%, medium from 10%, high from 25%)",
        _object("", SEVERITY, ("level",)),
    ),
    "claims": _texts("lines of the ledger from which the rule takes the time of its rows", enum=list(LEDGER_LINES)),
    "saving": _object("what would be gained; comes together with claims", SAVING, ("recoverable", "confidence")),
    "message": _text(
        "a sentence for the user, with {expression} or {expression:format} parts; formats are percent, duration, bytes, count, "
        "text, words and way"
    ),
    "recommend": _list(
        f"steps to take, each in the words of whom they are for ({', '.join(AUDIENCES)}), narrow before wide: a program hears the "
        "first that fits it. Code in them stands between backticks. `when` is a condition on the group, and on `program`",
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": {"enum": ["when", *AUDIENCES]},
            "additionalProperties": {"type": "string"},
        },
    ),
    "false_positives": _texts("what looks alike and is not meant"),
    "references": _texts("where to read more", format="uri"),
    "tests": _list("small traces and what the rule must say of them", _object("", TEST, ("given", "expect"))),
}
REQUIRED = ("id", "slug", "title", "status", "category", "why", "from", "message", "recommend", "references", "tests")


def rule_schema() -> Schema:
    """The JSON Schema (2020-12) of a rule file."""
    test = _object("", {**TEST, "given": {**TEST["given"], **_given()}}, ("given", "expect"))
    ledger = rule_tables()["ledger"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A rule of traceanalyzer",
        **_object("docs/rules.md explains each key", {**RULE, "tests": {**RULE["tests"], "items": test}}, REQUIRED),
        "$defs": {
            "table": {"enum": list(rule_tables())},
            "value": {"type": ["string", "number", "boolean", "null"]},
            "window": _object(ledger.rows, _columns(ledger)),
        },
    }


def _given() -> Schema:
    window: Schema = {"$ref": "#/$defs/window"}
    rows: dict[str, Schema] = {
        "window": {"anyOf": [window, _list("one a GPU", window)]},
        "unavailable": {
            "type": "object",
            "description": "table: why the trace lacks it",
            "additionalProperties": _text(""),
        },
        **{name: _list(spec.rows, _object("", _columns(spec))) for name, spec in rule_tables().items()},
    }
    scenarios = {"enum": list(named_scenarios()), "description": "a scenario that ships with the rules"}
    return {"anyOf": [scenarios, _object("the rows of its tables", rows)]}


def _columns(spec: TableSpec) -> dict[str, Schema]:
    """What a row of a test may say. Numbers may be written with a unit, which makes them texts to YAML."""
    told = {column.name: column.doc for column in spec.columns if not pa.types.is_list(column.type)}
    told.setdefault("duration", "length of the row; those without start_ns are laid one after another")
    told["repeat"] = "how many such rows"
    return {name: {"$ref": "#/$defs/value", "description": about} for name, about in told.items()}
