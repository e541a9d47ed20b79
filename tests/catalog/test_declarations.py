"""What is declared of tables: that it is there, fits together, and what is refused."""

from __future__ import annotations

import ast
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pytest

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.catalog import declarations
from traceanalyzer.catalog.catalog import Catalog
from traceanalyzer.catalog.declarations import GIVEN, declare, declared, event_tables, function_of, needs, rule_tables
from traceanalyzer.engine.labels import label_of, template
from traceanalyzer.engine.rules.lint import lint_rules
from traceanalyzer.engine.rules.rule_schema import rule_schema
from traceanalyzer.errors import ConfigError
from traceanalyzer.model.derived import Derived, Needs
from traceanalyzer.model.schema import Column, TableSpec
from traceanalyzer.vocabulary.lines import IDLE_PREFIX, LINES

OPS = TableSpec("op_counts", "the operations of all GPUs", (Column("count", pa.int64(), "count", "how many"),))


def op_counts(gpu_ops: pa.Table) -> pa.Table:
    return pa.table({"count": pa.array([gpu_ops.num_rows], pa.int64())}, OPS.schema)


def made(name: str = "op_counts", function: str = "op_counts", **more: object) -> Derived:
    given = {"inputs": ("gpu_ops",), "spec": OPS} | more
    return Derived(name, f"{__name__}:{function}", **given)


@pytest.fixture
def undone(monkeypatch):
    """What a test declares is forgotten after it."""
    monkeypatch.setattr(declarations, "_late", {})
    yield
    declarations.rule_tables.cache_clear()
    declarations.needs.cache_clear()


@pytest.fixture
def catalog(tmp_path: Path):
    trace = ta.load(KinetoTrace().op(0, 10, launch=(-5, -2)).op(20, 30, launch=(12, 14)).write(tmp_path / "t.json"))
    return lambda: Catalog(trace)


def functions(module: str) -> set[str]:
    """The functions and classes that a module has, without importing it."""
    spec = find_spec(module)
    assert spec and spec.origin, module
    return {
        node.name
        for node in ast.parse(Path(spec.origin).read_text()).body
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }


@pytest.mark.parametrize("one", declared().values(), ids=lambda one: one.name)
def test_each_is_made_by_what_there_is_from_what_there_is(one):
    known = declared().keys() | event_tables().keys() | set(GIVEN)
    paths = [one.made_by, *([one.label] if one.label and "{" not in one.label else [])]
    for module, function in (path.split(":") for path in paths):
        assert function in functions(module)
    assert {*one.inputs, *((one.needs.table,) if one.needs else ())} <= known
    assert one.spec is None or one.spec.name == one.name or one.internal, (
        "rules know a table by the name of its columns"
    )
    if one.label and "{" in one.label:
        label_of(one.name)
        columns = {"duration", *(column.name for column in one.spec.columns)}
        assert set(template_columns(one.label)) <= columns


def template_columns(text: str) -> list[str]:
    from traceanalyzer.engine.labels import _FIELD

    return [found[1] for found in _FIELD.finditer(text)]


def test_samples_lie_on_lines_of_the_ledger_and_fill_columns():
    for one in declared().values():
        if one.sample and one.spec:
            columns = {column.name for column in one.spec.columns}
            assert {*one.sample.fills, *one.sample.fills_with[1]} <= columns, one.name
            for line, parts in one.sample.lines:
                assert line in LINES or line == f"{IDLE_PREFIX}{{cause}}"
                assert set(parts) <= columns | {"duration"}


def test_one_that_comes_late_is_seen_by_catalogs_rules_and_schema(catalog, undone, tmp_path):
    rule = tmp_path / "ACM001.yaml"
    rule.write_text(RULE)
    assert any("unknown table 'op_counts'" in problem.message for problem in problems(rule))
    declare(made())
    assert catalog().table("op_counts").to_pylist() == [{"count": 2}]
    assert rule_tables()["op_counts"] is OPS
    assert "op_counts" in rule_schema()["$defs"]["table"]["enum"]
    assert problems(rule) == []


RULE = """\
id: ACM001
slug: operations
title: Operations
status: preview
category: gaps
why: a rule of a test
from: op_counts
metrics: {operations: sum(count)}
having: operations > 0
message: "{operations} operations."
recommend: [{any: Nothing.}]
references: ["https://example.org"]
tests:
  - name: fires
    given: {op_counts: [{count: 2}]}
    expect: {says: 2 operations}
  - name: silent
    given: {op_counts: []}
    expect: clean
"""


def problems(rule: Path) -> list[object]:
    return list(lint_rules([(str(rule), rule.read_text())]))


@pytest.mark.parametrize(
    ("one", "says"),
    [
        (made("gaps"), "'gaps', and there is one of that name already"),
        (made("gpu_ops"), "'gpu_ops', and there is one of that name already"),
        (made("host_ranges"), "'host_ranges', and there is one of that name already"),
        (made("portions"), "'portions', and there is one of that name already"),
        (made(inputs=("gpu_opps",)), "'op_counts' is made from 'gpu_opps', which nobody declares"),
        (made(inputs=("op_counts",)), "in a circle: op_counts from op_counts"),
        (made(needs=Needs("gpu_opps", "")), "made from 'gpu_opps', which nobody declares"),
        (made(empty_without="gaps"), "cannot be empty without 'gaps'"),
        (Derived("op_counts", "nowhere", ()), "'nowhere', which is not module:function"),
    ],
)
def test_what_does_not_fit_is_refused(undone, one, says):
    with pytest.raises(ConfigError, match=says):
        declare(one)
    assert "op_counts" not in declared()


@pytest.mark.parametrize(
    ("function", "says"),
    [("absent", "names .*:absent, which cannot be had"), ("functions", "is not what is declared of it")],
)
def test_a_function_that_is_not_what_it_says_is_told(catalog, undone, function, says):
    declare(made(function=function, inputs=("a_module",)), Derived("a_module", f"{__name__}:a_module", ()))
    with pytest.raises(ConfigError, match=says):
        catalog().table("op_counts")


def a_module() -> str:
    return __name__


def test_a_table_and_a_value_are_not_asked_for_alike(catalog):
    tables = catalog()
    assert len(tables.value("inputs")) == 1 and tables.value("busy")
    with pytest.raises(KeyError, match="'busy' is a value"):
        tables.table("busy")
    with pytest.raises(KeyError, match="'gaps' is a table"):
        tables.value("gaps")
    with pytest.raises(KeyError, match="no table 'nothing'"):
        tables.table("nothing")


def test_needs_are_of_tables_that_rules_read():
    assert needs().keys() <= rule_tables().keys()


@pytest.mark.parametrize(
    ("text", "row", "says"),
    [
        ("{duration}", {"duration": 1_500_000}, "1.5 ms"),
        ("{count} in {name}", {"count": 12345, "name": None}, "12,345 in an operation"),
        ("[{count} ]of {name}[ at {place}]", {"count": 0, "name": "a", "place": ""}, "0 of a"),
        ("[{count?}, some|, none]", {"count": 0}, ", none"),
        ("[{count?}, some|, none]", {"count": 3}, ", some"),
        ("{name}[ in {place}]", {"name": "a[{count}]", "place": "b[ in {name}]"}, "a[{count}] in b[ in {name}]"),
        ("{ratio}: {kind:way}, {name:words}", {"ratio": 1.256, "kind": "dtoh", "name": "host_work"}, None),
    ],
)
def test_a_template_writes_values_in_their_units_and_leaves_out_what_is_not_there(text, row, says):
    spec = TableSpec("x", "", (Column("count", pa.int64(), "count", ""),))
    written = template(text, spec)(row)
    assert written == says if says else written.startswith("1.26: ") and written.endswith("host work")


def test_what_is_left_out_would_be_empty(tmp_path: Path) -> None:
    """Of tables that are made from values: the code that is spared where a trace has no such evidence makes no rows of it."""
    trace = KinetoTrace().op(0, 100, launch=(-20, -10)).op(200, 300, launch=(150, 160)).write(tmp_path / "t.json")
    catalog = Catalog(ta.load(trace))
    spared = [one for one in declared().values() if one.empty_without and one.empty_without not in one.inputs]
    assert {"cpu_threads", "gpu_load"} <= {one.name for one in spared}
    for one in spared:
        assert one.spec is not None and one.empty_without is not None
        assert not catalog.table(one.empty_without).num_rows
        found = function_of(one.made_by)(*(catalog._input(name) for name in one.inputs))
        assert found.equals(one.spec.empty()), one.name
