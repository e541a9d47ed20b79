from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.engine.columns import Columns
from traceanalyzer.engine.evidence import evidence
from traceanalyzer.engine.language.compute import as_array
from traceanalyzer.engine.language.expression import compile_condition, compile_expression
from traceanalyzer.engine.language.kinds import BOOL, TEXT, number
from traceanalyzer.engine.language.names import Names
from traceanalyzer.engine.language.syntax import ExpressionError
from traceanalyzer.engine.rows import GPU_KEYS, TableRows, Windows
from traceanalyzer.model.schema import NAME

COLUMNS = {
    "rank": number(None),
    "device": number(None),
    "duration": number("ns"),
    "bytes": number("bytes"),
    "cause": TEXT,
    "draining": BOOL,
    "class": TEXT,
    "n": number("count"),
}
PARAMS = {"short": number("ns"), "least": number("share")}
WINDOW = {"duration": number("ns"), "step_count": number("count")}
ROW = Names(COLUMNS, PARAMS, WINDOW)
GROUP = Names(COLUMNS, PARAMS, WINDOW, {"lost": number("ns"), "gaps": number("count"), "loader": TEXT})


def rows(**columns: list[Any]) -> TableRows:
    count = len(next(iter(columns.values())))
    types = {"cause": NAME, "class": NAME, "draining": pa.bool_()}
    data = {"rank": [0] * count, "device": [0] * count, **columns}
    table = pa.table({k: pa.array(v, types.get(k, pa.int64())) for k, v in data.items()})
    return TableRows(table, windows(), values())


def windows() -> Windows:
    from traceanalyzer.derive.ledger.tables import LEDGER

    return Windows(
        pa.Table.from_pylist([{"rank": 0, "device": 0, "duration": 1000, "step_count": 0}], schema=LEDGER.schema)
    )


def values() -> dict[str, pa.Scalar]:
    return {
        "params.short": pa.scalar(20_000),
        "params.least": pa.scalar(0.1),
        "window.duration": pa.scalar(1000),
        "window.step_count": pa.scalar(0),
        "lost": pa.scalar(250),
        "gaps": pa.scalar(7),
        "loader": pa.scalar(None, pa.string()),
    }


def per_row(text: str, **columns: list[Any]) -> list[Any]:
    table = rows(**columns)
    return as_array(compile_expression(text, ROW)(table), table.count).to_pylist()


def of_group(text: str, **columns: list[Any]) -> Any:
    return compile_expression(text, GROUP)(rows(**(columns or {"n": [1]}))).as_py()


def error(text: str, names: Names = ROW) -> ExpressionError:
    with pytest.raises(ExpressionError) as caught:
        compile_expression(text, names)
    return caught.value


# Values


def test_unit_literals_compare_with_times_and_sizes() -> None:
    assert per_row("duration <= 20us", duration=[19_999, 20_000, 20_001]) == [True, True, False]
    assert per_row("bytes >= 64KiB", bytes=[65_535, 65_536]) == [False, True]
    assert per_row("1.5us < duration < params.short", duration=[1_500, 1_501, 20_000]) == [False, True, False]


def test_arithmetic() -> None:
    assert per_row("duration / window.duration", duration=[250, 1000]) == [0.25, 1.0]
    assert per_row("duration * 2 - 10ns", duration=[10]) == [10]
    assert per_row("-duration + 3ns * n", duration=[1], n=[2]) == [5]
    assert of_group("lost >= 25% * window.duration") is True
    assert of_group("lost >= params.least * window.duration and gaps > 7") is False


def test_large_nanoseconds_stay_exact_and_meet_shares() -> None:
    epoch = 1_700_000_000_000_000_001
    assert per_row("duration + 1ns", duration=[epoch]) == [epoch + 1]
    assert per_row("duration * 50%", duration=[epoch])[0] == pytest.approx(epoch / 2)


def test_overflow_is_an_error_and_no_wrong_number() -> None:
    with pytest.raises(pa.ArrowInvalid):
        per_row("duration * n", duration=[2**62], n=[4])


def test_division_by_zero_is_null_and_null_is_false() -> None:
    assert of_group("gaps / window.step_count") is None
    assert of_group("gaps / window.step_count >= 5") is False
    assert per_row("duration / n", duration=[6, 6], n=[0, 3]) == [None, 2.0]


def test_a_test_on_a_null_is_false() -> None:
    cause = ["input", None]
    assert per_row('cause == "input"', cause=cause) == [True, False]
    assert per_row('cause != "input"', cause=cause) == [False, False]
    assert per_row('not cause == "input"', cause=cause) == [False, True]
    assert per_row('cause in ["input", "x"]', cause=cause) == [True, False]
    assert per_row('cause not in ["x"]', cause=cause) == [True, False]
    assert per_row("cause is None", cause=cause) == [False, True]
    assert per_row("cause != None", cause=cause) == [True, False]
    assert per_row('contains(cause, "np")', cause=cause) == [True, False]
    assert per_row("draining and true", draining=[True, None]) == [True, False]


def test_a_null_condition_counts_as_false() -> None:
    condition = compile_condition("draining", ROW)
    assert condition(rows(draining=[True, None, False])).to_pylist() == [True, False, False]


def test_row_functions() -> None:
    assert per_row('matches(cause, "^in\\w+")', cause=["input", "pin", None]) == [True, False, False]
    assert per_row('startswith(cause, "in")', cause=["input", "pin"]) == [True, False]
    assert per_row("least(duration, 5ns)", duration=[3, 9]) == [3, 5]
    assert per_row("greatest(abs(-duration), 5ns)", duration=[3, 9]) == [5, 9]
    assert per_row('coalesce(cause, "?")', cause=["a", None]) == ["a", "?"]
    assert per_row('if_else(duration > 5ns, "long", "short")', duration=[3, 9]) == ["short", "long"]
    assert of_group('coalesce(concat(" in ", loader), "")') == ""
    assert of_group('plural(gaps, "gap")') == "gaps"
    assert of_group('counted(gaps, "gap")').endswith(" gaps")


def test_class_is_a_column_although_python_keeps_the_word() -> None:
    assert per_row('class == "communication"', **{"class": ["compute", "communication"]}) == [False, True]


def test_aggregates() -> None:
    data = {"duration": [1, 2, 3, 10], "cause": ["a", "b", "b", None], "draining": [True, None, False, True]}
    for text, expected in {
        "sum(duration)": 16,
        "count()": 4,
        "min(duration)": 1,
        "max(duration)": 10,
        "mean(duration)": 4.0,
        "median(duration)": 2.5,
        "quantile(duration, 0.25)": 1.75,
        "count_distinct(cause)": 2,
        "any(draining)": True,
        "all(draining)": False,
        "top(cause, duration)": "b",
        "count(where=duration > 1ns)": 3,
        'sum(duration, where=cause == "b")': 5,
        "sum(duration) / window.duration": 0.016,
        "sum(duration / window.duration)": 0.016,
        "sum(2ns)": 8,
    }.items():
        assert of_group(text, **data) == expected, text


def test_aggregates_of_nothing() -> None:
    assert of_group("sum(duration, where=duration > 5ns)", duration=[1]) == 0
    assert of_group("max(duration, where=duration > 5ns)", duration=[1]) is None
    assert of_group("top(cause, duration)", cause=[None], duration=[1]) is None
    assert of_group("top(cause, duration)", cause=["b", "a"], duration=[1, 1]) == "a"


# Kinds


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("duration / duration", "share"),
        ("10% * duration", "ns"),
        ("duration / n", "ns"),
        ("n / n", None),
        ("1 - duration / duration", "share"),
        ("bytes / 2", "bytes"),
        ("n + 1", "count"),
    ],
)
def test_units_of_results(text: str, unit: str | None) -> None:
    assert compile_expression(text, ROW).kind == number(unit)


@pytest.mark.parametrize(
    "text",
    [
        "duration >= 10%",
        "duration + bytes",
        "duration > 100",
        "duration * duration",
        "bytes / duration",
        "cause > 3",
        "cause + cause",
        "n >= 10%",
        "duration and draining",
        'draining == "x"',
        "duration in [3%]",
        "not duration",
        "-cause",
        "if_else(draining, duration, bytes)",
        'sum(cause) == "x"',
    ],
)
def test_kinds_that_do_not_go_together(text: str) -> None:
    error(text)
    error(text, GROUP)


def test_zero_is_zero_in_every_unit() -> None:
    assert per_row("duration > 0", duration=[0, 1]) == [False, True]


# Errors


@pytest.mark.parametrize(
    ("text", "column", "says"),
    [
        ("duration > 20us and caus == 'x'", 20, "did you mean 'cause'?"),
        ("duration > params.shrt", 11, "did you mean 'short'?"),
        ("window.durtion > 1ns", 0, "did you mean 'duration'?"),
        ("20us < duration and bytes > 3%", 20, "a size in bytes and a share"),
        ("5µs < duration or bytes > 3%", 18, "a size in bytes and a share"),
        ("  bytes > 3%", 2, "a size in bytes and a share"),
        ("contans(cause, 'x')", 0, "did you mean 'contains'?"),
        ("sum(duration) > 1ns", 0, "sums up a group"),
        ("duration > 20parsec", 11, "has no unit that is known"),
        ("duration >", 10, "this is no expression"),
        ("matches(cause, '(')", 0, "matches:"),
        ("contains(cause, cause)", 0, "must be a literal"),
    ],
)
def test_errors_point_at_the_mistake(text: str, column: int, says: str) -> None:
    caught = error(text)
    assert (caught.column, says in str(caught)) == (column, True), str(caught)


def test_group_level_errors() -> None:
    assert "needs an aggregate" in str(error("duration > 1ns", GROUP))
    assert "cannot stand inside another" in str(error("sum(max(duration))", GROUP))
    assert "one value a group" in str(error("sum(lost)", GROUP))
    assert "have no window" in str(error("window.duration > 1ns", Names(COLUMNS, PARAMS, None)))


# Attacks

ATTACKS = [
    "__import__('os').system('true')",
    "().__class__.__bases__[0].__subclasses__()",
    "cause.__class__",
    "params.__class__",
    "params.short.as_py()",
    "window.duration.__init__",
    "[x for x in (1, 2)]",
    "{x: 1 for x in (1, 2)}",
    "lambda: 1",
    "(lambda x: x)(1)",
    "f'{cause}'",
    "f'{__import__(\"os\")}'",
    "(x := 1)",
    "9 ** 9 ** 9 ** 9",
    "1 << 100000",
    "10 % 3 // 2 @ 2",
    "open('/etc/passwd')",
    "eval('1')",
    "exec('1')",
    "getattr(cause, 'x')",
    "cause[0]",
    "cause if draining else cause",
    "await cause",
    "yield",
    "*cause",
    "contains(*cause)",
    "contains(**cause)",
    "sum(duration, where=draining, other=draining)",
    "print(cause)",
    "b'bytes' == cause",
    "1j",
    "...",
    "import os",
    "a = 1",
    "1; 2",
    "cause\n; import os",
    "cause == 'a\x00b'",
    "9" * 400,
    "1e999",
    "~n",
    "{1, 2}",
    "{**cause}",
    "cause is 'x'",
    "()",
    "",
    "#",
    "\\",
    "'unterminated",
    "\ud800",
]


@pytest.mark.parametrize("text", ATTACKS)
def test_nothing_outside_the_grammar_compiles(text: str) -> None:
    error(text)
    error(text, GROUP)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 900 + "1" + ")" * 900,
        "-" * 1900 + "1",
        "not " * 400 + "draining",
        "[" * 900,
        "n" + " + n" * 300,
        "abs(" * 60 + "n" + ")" * 60,
        "n == 1 or " * 5000 + "draining",
        "cause == '" + "x" * 5000 + "'",
    ],
)
def test_size_and_depth_are_capped(text: str) -> None:
    error(text)


@given(st.text(max_size=60))
def test_any_text_compiles_or_is_refused_politely(text: str) -> None:
    try:
        compile_expression(text, ROW)
    except ExpressionError as caught:
        assert 0 <= caught.column <= len(text)


TOKENS = [
    "duration",
    "cause",
    "draining",
    "n",
    "20us",
    "3%",
    "(",
    ")",
    "+",
    "-",
    "*",
    "/",
    "<",
    "==",
    "and",
    "not",
    "in",
]
TOKENS += ["[", "]", '"x"', ",", "sum", "contains", "params.short", "window.duration", "None", "0", "."]


@given(st.lists(st.sampled_from(TOKENS), max_size=14))
def test_any_row_of_tokens_compiles_and_runs_or_is_refused(tokens: list[str]) -> None:
    text = " ".join(tokens)
    table = rows(duration=[1, 2], cause=["x", None], draining=[True, None], n=[0, 3])
    try:
        expression = compile_expression(text, ROW)
    except ExpressionError as caught:
        assert 0 <= caught.column <= len(text)
        return
    try:
        assert len(as_array(expression(table), 2)) == 2
    except pa.ArrowInvalid as overflow:
        assert "overflow" in str(overflow)


def test_gpu_keys_are_what_windows_need() -> None:
    assert GPU_KEYS == ("rank", "device")


# Names stay codes of a dictionary


def loose() -> pa.Array:
    """A dictionary that holds one name twice, one that no row has, and no name at all."""
    codes = pa.array([0, 1, 2, 3, None], pa.int32())
    return pa.DictionaryArray.from_arrays(codes, pa.array(["input", "host_work", "input", None, "unused"]))


def test_two_codes_of_one_name_are_one_name() -> None:
    table = pa.table({"rank": [0] * 5, "device": [0] * 5, "cause": loose(), "duration": [1, 3, 4, 100, 100]})
    read = TableRows(table, windows(), values())
    assert compile_expression("count_distinct(cause)", GROUP)(read).as_py() == 2
    assert compile_expression("top(cause, duration)", GROUP)(read).as_py() == "input"
    assert compile_expression("top_share(cause, duration)", GROUP)(read).as_py() == 5 / 208
    assert compile_expression("count(where=cause is None)", GROUP)(read).as_py() == 2
    found = [(keys["cause"].as_py(), group.count) for keys, group in read.groups(("cause",))]
    assert found == [("host_work", 1), ("input", 2), (None, 2)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('cause == "input"', [True, False, False]),
        ('"input" == cause', [True, False, False]),
        ('cause != "input"', [False, True, False]),
        ("cause == class", [False, True, False]),
        ('cause in ["input", "dependency"]', [True, False, False]),
        ('cause not in ["input"]', [False, True, False]),
        ('cause in ["input", None]', [True, False, False]),
        ('contains(cause, "host")', [False, True, False]),
        ('concat(cause, "!")', ["input!", "host_work!", None]),
        ('concat(cause, "/", class)', ["input/a", "host_work/host_work", None]),
        ('coalesce(cause, "?")', ["input", "host_work", "?"]),
        ('if_else(cause == "input", cause, class)', ["input", "host_work", "b"]),
        ("cause is None", [False, False, True]),
    ],
)
def test_names_are_texts(text: str, expected: list[Any]) -> None:
    columns = {"cause": ["input", "host_work", None], "class": ["a", "host_work", "b"]}
    assert per_row(text, **columns) == expected
    # The same on a few rows of a table with more names than rows.
    table = rows(**{name: [*column, *map(str, range(50))] for name, column in columns.items()})
    few = table.filter(lambda _: pa.array([True] * 3 + [False] * 50))
    assert as_array(compile_expression(text, ROW)(few), few.count).to_pylist() == expected


def test_rows_of_rows_of_rows() -> None:
    table = rows(duration=[5, 1, 4, 2, 3], cause=["b", "a", "b", None, "a"], rank=[1, 0, 1, 0, 0])
    some = table.filter(lambda _: pa.array([True, True, True, False, True]))
    groups = {keys["rank"].as_py(): group for keys, group in some.groups(("rank", "device"))}
    assert list(groups) == [0, 1]
    assert groups[0].column("duration").to_pylist() == [1, 3]
    assert groups[1].filter(lambda _: pa.array([False, True])).records(np.array([0]))[0]["duration"] == 4
    assert groups[0].window("duration").to_pylist() == [1000, 1000]
    assert groups[1].window("duration").to_pylist() == [None, None]


# Many rows are read in blocks

NAMED = st.sampled_from(["a", "b", "c", None])
SMALL = st.one_of(st.none(), st.integers(-3, 9))


@pytest.mark.parametrize("chunk", [1, 3, 100])
@given(
    data=st.lists(
        st.tuples(st.integers(0, 1), st.integers(0, 1), SMALL, NAMED, st.booleans(), st.integers(0, 9)), max_size=40
    )
)
def test_blocks_of_rows_say_what_all_rows_say(chunk: int, data: list[tuple[Any, ...]]) -> None:
    columns = dict(
        zip(("rank", "device", "duration", "cause", "flag", "start_ns"), zip(*data, strict=True), strict=False)
    )
    names = pa.dictionary(pa.int32(), pa.string())
    types = (pa.int32(), pa.int32(), pa.int64(), names, pa.bool_(), pa.int64())
    schema = pa.schema(list(zip(("rank", "device", "duration", "cause", "flag", "start_ns"), types, strict=True)))
    whole = pa.table({name: pa.array(columns.get(name, ()), schema.field(name).type) for name in schema.names})
    whole = whole.append_column("end_ns", pa.array([9 + row[5] for row in data], pa.int64()))
    # Each chunk has a dictionary of its own.
    pieces = [
        pa.Table.from_pylist(whole[at : at + chunk].to_pylist(), whole.schema) for at in range(0, len(data), chunk)
    ]
    chunked = pa.concat_tables(pieces) if pieces else whole
    kinds = {"duration": number("ns"), "cause": TEXT, "flag": BOOL, "start_ns": number("ns"), "rank": number(None)}
    row, group = Names(kinds, {}, None), Names(kinds, {}, None, {})
    texts = (
        *(
            "count()",
            "count(where=flag)",
            "sum(duration)",
            "min(duration)",
            "max(duration, where=flag)",
            "mean(duration)",
        ),
        *(
            "median(duration)",
            "quantile(duration, 0.9)",
            "count_distinct(duration)",
            "count_distinct(cause)",
            "any(flag)",
        ),
        *(
            "all(flag)",
            "top(cause, duration)",
            "top_share(cause, duration)",
            "top(cause, duration / 3)",
            "sum(duration / 3)",
        ),
        *('top(coalesce(cause, "z"), start_ns)', "count_distinct(rank, where=duration > 2ns)", "count_distinct(flag)"),
    )
    asked = [compile_expression(text, group) for text in texts]
    condition = compile_condition('duration > 0ns and not (cause == "b") and flag', row)

    def said(table: pa.Table) -> Any:
        read = TableRows(table, windows(), values())
        kept = read.filter(lambda some: as_array(condition(some), some.count))
        result = []
        for keys in ((), GPU_KEYS, ("cause",)):
            for some in (read, kept):
                for key, found in some.groups(keys):
                    found.sum_up(one for expression in asked for one in expression.aggregates)
                    shown = evidence("nothing", found, None, 3)
                    result.append((key, [expression(found).as_py() for expression in asked], shown))
                    found.add_column("unclaimed", pa.array([at % 3 for at in found.column("start_ns").to_pylist()]))
                    result.append(evidence("nothing", found, None, 3))
        return result

    expected = said(whole)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Columns, "block", 4)
        assert repr(said(chunked)) == repr(expected)


@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(1, 2)), max_size=30), st.integers(1, 6))
def test_what_is_shown_of_rows_in_turn(data: list[tuple[int, int, int]], limit: int) -> None:
    rows, end = [], 0
    for device, left, length in sorted(data, key=lambda one: one[0]):
        rows.append({"rank": 0, "device": device, "start_ns": end, "end_ns": end + length, "left": left})
        end += length
    columns = ("rank", "device", "start_ns", "end_ns", "left")
    table = pa.Table.from_pylist(rows, pa.schema([(name, pa.int64()) for name in columns]))

    def shown() -> list[Any]:
        found = []
        for _, group in TableRows(table, windows(), values()).groups(GPU_KEYS):
            group.add_column("unclaimed", group.column("left"))
            found.append(evidence("nothing", group, None, limit))
        return found

    expected = shown()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Columns, "block", 3)
        assert shown() == expected
