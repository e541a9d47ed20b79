"""JSON that is not JSON: an event is mended or dropped and counted, and nothing else is lost."""

from __future__ import annotations

import io
import json
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import traceanalyzer as ta
from tests.support.kineto import KinetoTrace
from traceanalyzer.ingest.formats.kineto.text.decode import Events
from traceanalyzer.ingest.formats.kineto.text.opening import NoEventsError
from traceanalyzer.ingest.formats.kineto.text.repair import Broken, Mended, Repair, mend
from traceanalyzer.ingest.formats.kineto.text.splitter import Splitter

DROPPED = "events that are no valid JSON and could not be mended were dropped"
CUT = (
    "the file ends in the middle of its events; no work of a GPU comes before that, so there is nothing to judge: copy or record the "
    "trace again"
)
COMMAS = "commas missing or too many between events were put right"
MORE = (
    "more events follow the end of the trace (a second trace, or the rest of an older, longer file); they were not read"
)
QUANTISED = "times are written with fewer digits than microseconds need; what lies closer together cannot be told apart"


def event(name: str = "broken", **fields: object) -> str:
    return json.dumps({"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": 2, "ts": 1.5, "dur": 2, **fields})


FIRST, LAST = event("first"), event("last")


def document(*events: str, before: str = '"schemaVersion": 1, ', after: str = ', "traceName": "t"}') -> bytes:
    return f'{{{before}"traceEvents": [{", ".join(events)}]{after}'.encode()


@pytest.fixture
def load(tmp_path):
    """Reads bytes as a trace file."""

    def loaded(data: bytes) -> ta.Trace:
        (tmp_path / "t.json").write_bytes(data)
        return ta.load(tmp_path / "t.json")

    return loaded


def names(trace: ta.Trace) -> list[str | None]:
    return sorted(trace.table("host_ranges")["name"].to_pylist(), key=str)


def health(trace: ta.Trace) -> dict[str, tuple[str, int]]:
    rows = trace.table("health").to_pylist()
    assert {row["code"] for row in rows} <= {"TRC001"}
    return {row["message"]: (row["severity"], row["count"]) for row in rows}


# What stands in the file for the text of a name, and the name that was meant.
@pytest.mark.parametrize(
    ("written", "meant", "repair"),
    [
        (r"torch\cuda\__init__.py(219): x", r"torch\cuda\__init__.py(219): x", Repair.BACKSLASH),
        (r"torch\utils\x.py", r"torch\utils\x.py", Repair.BACKSLASH),
        ("C:\\dir\\", "C:\\dir\\", Repair.BACKSLASH),
        ("|||S\x01(1): <module>", "|||S\x01(1): <module>", Repair.CONTROL),
        ("a\tb\nc", "a\tb\nc", Repair.CONTROL),
        ('{"device": "cpu"}(12): run', '{"device": "cpu"}(12): run', Repair.QUOTE),
        ('say "hello", you', 'say "hello", you', Repair.QUOTE),
        (r"half \ud800 a pair \ud83d\ude00", "half \ufffd a pair \U0001f600", Repair.SURROGATE),
    ],
)
def test_a_name_is_mended(load, written, meant, repair):
    trace = load(document(FIRST, event("NAME").replace("NAME", written), LAST))
    assert names(trace) == sorted(["first", meant, "last"])
    assert trace.table("host_ranges")["start_ns"].to_pylist() == [1500] * 3
    assert health(trace) == {repair.value: ("info", 1)}
    (row,) = trace.table("health").to_pylist()
    assert row["example"].startswith(
        '{"ph": "X", "cat": "cpu_op", "name": "' + re.sub("[\x00-\x1f]", "\ufffd", written[:8])
    )


def test_a_valid_escape_changes_the_name_unseen(load):
    # Nobody can tell that this was a path.
    assert names(load(document(event("NAME").replace("NAME", r"C:\new")))) == ["C:\new"]


@pytest.mark.parametrize("value", ["N/A", "nan", "NaN", "inf", "-inf", "Infinity", "-Infinity", ""])
def test_what_is_no_number_is_absent(load, value):
    trace = load(document(FIRST, event(args={"External id": 9}).replace("9", value), LAST))
    assert names(trace) == ["broken", "first", "last"]
    assert trace.table("host_ranges")["external_id"].to_pylist() == [None] * 3
    assert health(trace) == {Repair.NO_VALUE.value: ("info", 1)}


def test_a_number_beyond_any_float_is_absent(load):
    trace = load(document(FIRST, event(args={"External id": 9}).replace("9", "1e999"), LAST))
    assert names(trace) == ["broken", "first", "last"]
    assert health(trace) == {"values of a type that no reader can use were read as absent": ("low", 1)}


@pytest.mark.parametrize(
    ("text", "count", "repair"),
    [
        ('{"ph":"M","name":"process_name","pid":1,"tid": 0","args":{"name":"python"}}', 1, Repair.STRAY_QUOTE),
        ('{"ph":"M","name":"process_name","pid":1,"tid": 0"}', 1, Repair.STRAY_QUOTE),
        (event()[:-1] + ",}", 1, Repair.COMMA),
        (event(args={"list": [1, 2]}).replace("2]", "2,]"), 1, Repair.COMMA),
        (event().replace(", ", ",, "), 1, Repair.COMMA),
    ],
)
def test_stray_quotes_and_commas(load, text, count, repair):
    trace = load(document(FIRST, text, LAST))
    assert {"first", "last"} <= set(names(trace))
    assert health(trace) == {repair.value: ("info", count)}


@pytest.mark.parametrize(
    "text",
    [
        '{"ph":"X","name":"abc,"ts":1,"cat":"cpu_op","pid":1}',
        '{"ph":"X","name":"x","ts":1,"args":{"cfg":"{"a": "b", "c": "d"}","n":1}}',
        '{"ph":"X","name":"x","name2":"a"b","ts":1,"ph":"X"}',
        "{'ph':'X','name':'single','ts':1}",
        '{"ph":"X","ts":1,"ph":"X","name":@}',
        '{"ph":"X","name":unquoted,"ts":1}',
        '{"ph":"X","name":"x","args":{"list":[1,,2]}}',
        '{"ph":"X","name":"x","args":{"list":[1,2}}',
        '{"ph":"X","name":"x"]}',
        '{"ph" "X"}',
        '{"ph":"X","args":{"open":[1,2',
        '{"ph":"X","name":"open',
        "some words",
        "12",
        '"text"',
    ],
)
def test_what_cannot_be_mended_costs_one_event(load, text):
    trace = load(document(FIRST, text, LAST, event("later")))
    assert names(trace) == ["first", "last", "later"]
    assert health(trace) == {DROPPED: ("low", 1)}
    assert trace.table("health")["example"].to_pylist() == [text]


def test_the_last_event_may_be_the_broken_one(load):
    trace = load(document(FIRST, '{"ph":"X","name":@}', after=', "distributedInfo": {"rank": 3, "world_size": 8}}'))
    assert (names(trace), trace.inputs[0].rank) == (["first"], 3)
    assert health(trace) == {DROPPED: ("low", 1)}


def test_an_event_written_into_a_list_of_another(load):
    outer = event(args={"list": [1, 2, 3]}).replace("[1, 2,", f"[1, {event('inner')},")
    trace = load(document(FIRST, outer.replace('"broken"', "@"), LAST))
    assert names(trace) == ["first", "inner", "last"]
    assert health(trace) == {DROPPED: ("low", 2)}


def test_every_broken_event_is_counted(load):
    broken = event().replace('"broken"', "@")
    trace = load(document(*[FIRST, broken, broken, LAST] * 5))
    assert names(trace) == ["first"] * 5 + ["last"] * 5
    assert health(trace) == {DROPPED: ("low", 10)}


@pytest.mark.parametrize(
    ("between", "count"), [(" ", 1), (",,", 1), (", ,\n,", 1), (", {}, ", 0), (", {} ", 1), (",{\n},{},", 0)]
)
def test_between_events(load, between, count):
    trace = load(b'{"traceEvents": [' + between.join([FIRST, LAST]).encode() + b"]}")
    assert names(trace) == ["first", "last"]
    assert health(trace) == ({COMMAS: ("info", count)} if count else {})


@pytest.mark.parametrize("text", ["[,{}]", "[{},]", "[ {} , ]"])
def test_commas_at_the_ends(load, text):
    trace = load(text.replace("{}", FIRST).encode())
    assert (names(trace), health(trace)) == (["first"], {COMMAS: ("info", 1)})


def test_a_stray_bracket_between_events(load):
    trace = load(b'{"traceEvents": [' + f"{FIRST}], {LAST}".encode() + b"]}")
    assert (names(trace), health(trace)) == (["first", "last"], {DROPPED: ("low", 1)})


class TestWhereTheFileEnds:
    @pytest.mark.parametrize(
        "after", ["", ",", ", ", ',{"ph', ',{"ph":"X","name":"torch\\', ',{"ph":"X","args":{"a":[1,']
    )
    def test_object(self, load, after):
        trace = load(document(FIRST, LAST, after="")[:-1] + after.encode())
        assert (names(trace), health(trace)) == (["first", "last"], {CUT: ("high", 1)})

    def test_inside_a_character(self, load):
        data = document(FIRST, event("caf\u00e9"), after="").replace(b"\\u00e9", "\u00e9".encode())
        trace = load(data[: data.index("\u00e9".encode()) + 1])
        message = "bytes that are no UTF-8 were read as question marks"
        assert (names(trace), health(trace)) == (["first"], {CUT: ("high", 1), message: ("info", 1)})

    def test_a_list_needs_no_bracket(self, load):
        trace = load(f"[{FIRST},\n{LAST},\n".encode())
        message = "the list of events has no end, which its format allows; whether events were lost cannot be told"
        assert (names(trace), health(trace)) == (["first", "last"], {message: ("info", 1)})

    def test_a_list_inside_an_event(self, load):
        trace = load(f"[{FIRST},\n{LAST[:-9]}".encode())
        assert (names(trace), health(trace)) == (["first"], {CUT: ("high", 1)})


class TestLayouts:
    def test_one_event_a_line(self, load):
        trace = load(f"{FIRST}\n{LAST}\n".encode())
        assert (names(trace), health(trace)) == (["first", "last"], {})

    def test_the_word_in_metadata(self, load):
        decoy = '"notes": {"traceEvents": [{"ph": "X"}], "text": "\\"traceEvents\\": ["}, '
        trace = load(document(FIRST, LAST, before=decoy))
        assert (names(trace), health(trace)) == (["first", "last"], {})

    def test_a_damaged_key(self, load):
        trace = load(document(FIRST, LAST).replace(b"traceEvents", b"traceEv\x01nts"))
        message = "the key of the event array is missing or damaged; the events were known by their form"
        assert names(trace) == ["first", "last"]
        assert health(trace)[message] == ("low", 1)

    @pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2]", '[{"a": 1}]', '{"a": 1}\n{"b": 2}', '{"ph": {"a": 1}'])
    def test_something_else(self, text):
        with pytest.raises(NoEventsError):
            list(Splitter(io.BytesIO(text.encode()), Events))

    def test_metadata_on_both_sides(self, load):
        trace = load(
            document(
                FIRST,
                before='"deviceProperties": [{"id": 0, "name": "GPU"}], ',
                after=', "distributedInfo": {"rank": 2}}',
            )
        )
        assert (trace.table("devices")["name"].to_pylist(), trace.inputs[0].rank, health(trace)) == (["GPU"], 2, {})


class TestBrokenMetadata:
    def test_mended(self, load):
        trace = load(
            document(
                FIRST,
                before='"WARNING": ["text "with quotes" in it"], "path": "C:\\dir", ',
                after=', "distributedInfo": {"rank": 2, "world_size": 4,}}',
            )
        )
        assert (names(trace), trace.inputs[0].rank, trace.inputs[0].world_size) == (["first"], 2, 4)
        assert health(trace) == {"the metadata around the events was no valid JSON and was mended": ("info", 1)}

    def test_single_facts(self, load):
        trace = load(
            document(
                FIRST,
                LAST,
                before='"broken": @, "deviceProperties": [{"id": 0, "name": "GPU",}], ',
                after=', "distributedInfo": {"rank": 2}, "baseTimeNanoseconds": 1700000000000000000}',
            )
        )
        (found,) = trace.inputs
        assert (found.rank, found.clock_base_ns, names(trace)) == (2, 1700000000000000000, ["first", "last"])
        assert trace.table("devices")["name"].to_pylist() == ["GPU"]
        message = "the metadata around the events is not valid JSON; of it only single facts were read"
        assert health(trace) == {message: ("low", 1)}


class TestTwoWriters:
    """A file that holds the text of two traces."""

    def test_one_after_the_other(self, load):
        trace = load(document(FIRST) + document(LAST))
        assert (names(trace), health(trace)) == (["first"], {MORE: ("medium", 1)})

    def test_the_tail_of_an_older_file(self, load):
        trace = load(document(FIRST) + f'"dur": 5}}, {LAST}]}}'.encode())
        assert (names(trace), health(trace)) == (["first"], {MORE: ("medium", 1)})

    def test_text_after_the_end(self, load):
        trace = load(document(FIRST) + b"\n\0\0 oops")
        assert (names(trace), health(trace)) == (
            ["first"],
            {"text after the end of the trace was not read": ("low", 1)},
        )

    def test_zeros_after_the_end_are_nothing(self, load):
        assert health(load(document(FIRST) + b"\0" * 5000)) == {}

    def test_a_second_array(self, load):
        trace = load(document(FIRST, after=f', "traceEvents": [{LAST}]}}'))
        message = "a second event array follows the first; it was not read"
        assert (names(trace), health(trace)) == (["first"], {message: ("medium", 1)})

    def test_mixed(self, load):
        one, two = document(FIRST, event("cut"), event("lost")), document(*(event(f"other {n}") for n in range(3)))
        at, to = one.index(b"cut") + 1, two.index(b'"other 2"') - 4
        trace = load(one[:at] + two[:to] + one[at:])
        assert names(trace) == ["first", "lost", "other 0", "other 1"]
        message = (
            "another trace begins in the middle of the events: two programs wrote this file, and their events are mixed"
        )
        assert health(trace) == {message: ("high", 1), DROPPED: ("low", 2)}


class TestNumbers:
    def test_ids_beyond_64_bits(self, load):
        for number in ("17093776592125785438", "170937765921257854380000"):
            trace = load(document(FIRST, event(args={"Comms Id": 9}).replace("9", number)))
            assert (names(trace), health(trace)) == (["broken", "first"], {})

    @pytest.mark.parametrize(
        ("ts", "ns"),
        [
            ('"1719000000000000.123"', 1719000000000000123),
            ("1719000000000000.999", 1719000000000000999),
            ("1.719000000000000123e+15", 1719000000000000123),
            ("-0.0", 0),
            ('"12.5"', 12500),
        ],
    )
    def test_times(self, load, ts, ns):
        trace = load(document(event().replace("1.5", ts)))
        assert (trace.table("host_ranges")["start_ns"].to_pylist(), health(trace)) == ([ns], {})

    def test_too_few_digits(self, load):
        short = event("a").replace("1.5", "1.7126e+15")
        trace = load(document(short, event("b").replace("1.5", "1.7127e+15")))
        assert trace.table("host_ranges")["start_ns"].to_pylist() == [1712600000000000000, 1712700000000000000]
        assert health(trace) == {QUANTISED: ("high", 2)}
        assert health(load(document(short, FIRST, LAST)))[QUANTISED] == ("medium", 1)

    @pytest.mark.parametrize("field", ["pid", "tid", "cat", "name", "dur", "args"])
    def test_a_value_of_a_wrong_type_costs_only_itself(self, load, field):
        fields = json.loads(event("x", args={"External id": 9})) | {field: True}
        trace = load(document(FIRST, json.dumps(fields), LAST))
        assert health(trace)["values of a type that no reader can use were read as absent"] == ("low", 1)
        assert trace.table("host_ranges").num_rows == 3

    def test_wrong_types_in_arguments(self, load):
        args = {"External id": [1], "Sequence number": 5, "Input Dims": [[2, 3]]}
        trace = load(document(event(args=args)))
        (row,) = trace.table("host_ranges").to_pylist()
        assert (row["external_id"], row["sequence"], row["shapes"]) == (None, 5, "[[2, 3]]")
        assert health(trace) == {"values of a type that no reader can use were read as absent": ("low", 1)}


def test_nothing_usable_is_no_error(load):
    trace = load(document(*['{"ph":@}'] * 3))
    assert sum(trace.table(name).num_rows for name in ("gpu_ops", "host_ranges", "api_calls")) == 0
    assert health(trace) == {DROPPED: ("low", 3)}


class TestMend:
    def mended(self, text: str) -> str:
        found = mend(text.encode(), 0, len(text.encode()), more=False)
        assert isinstance(found, Mended)
        return found.text.decode()

    @pytest.mark.parametrize(
        ("text", "meant"),
        [
            ('{"a":1}', {"a": 1}),
            ('{ "a" : [ 1 , {"b":"x"} , "y" ] }', {"a": [1, {"b": "x"}, "y"]}),
            (r'{"a":"\n\u0041\\"}', {"a": "\nA\\"}),
            ('{"a":-1.5e+3,"b":true,"c":null}', {"a": -1500.0, "b": True, "c": None}),
            (r'{"a":"b\","c":"d"}', {"a": "b\\", "c": "d"}),
            (r'{"a":"say \"x\", \"y\": z"}', {"a": 'say "x", "y": z'}),
            ('{"args":{"a":"b "c" d","e":"f"},"ts":1}', {"args": {"a": 'b "c" d', "e": "f"}, "ts": 1}),
            ('{"a":["b "c" d", "e"]}', {"a": ['b "c" d', "e"]}),
        ],
    )
    def test_reads(self, text, meant):
        assert json.loads(self.mended(text)) == meant

    def test_stops_at_the_end_of_the_event(self):
        text = b'{"name":"a\\q"} , {"ph":"X"}'
        assert mend(text, 0, len(text), more=False) == Mended(b'{"name":"a\\\\q"}', 14, {Repair.BACKSLASH: 10})

    def test_says_when_it_needs_more(self):
        text = b'{"ph":"X","name":"a\\q","ts":1}'
        for stop in range(1, len(text) - 1):
            assert mend(text, 0, stop, more=True) is None
            assert isinstance(mend(text, 0, stop, more=False), Broken)

    def test_an_event_inside_a_broken_one_is_the_next(self):
        text = b'{"ph":"X","args":{"a":[1, {"ph":"X","ts":1}, {"ph":"X","ts":2}]}'
        assert mend(text, 0, len(text), more=False) == Broken(text.index(b'{"ph":"X","ts":1'))


def outcome(data: bytes, chunk_bytes: int) -> object:
    """Everything that the splitter says of a text."""
    splitter = Splitter(io.BytesIO(data), Events, chunk_bytes)
    try:
        chunks = list(splitter)
    except NoEventsError:
        return None
    found = {name: value for name, value in vars(splitter).items() if not name.startswith("_")}
    events = [msgspec.json.encode(e) for chunk in chunks for e in chunk.events]
    starts = [int(t) for chunk in chunks for t in chunk.start]
    misfits = sum(chunk.misfits for chunk in chunks)
    return events, starts, misfits, splitter.bad_bytes, {**found, "trailer": splitter.trailer.strip(b"\0")}


FAULTS = [
    b"\\", b'"', b"{", b"}", b"[", b"]", b",", b",,", b"N/A", b"nan", b"\n", b"\x01", b"\xff", b"\xe2\x82", b"\\u12", b"\\ud800",
    b"},{", b"]}", b"{}", b"1e999", b'\\"', b'",', b'{"ph":"X","name":"in","ts":1},', b'{"ph":"X","args":{"x":[',
    b'"traceEvents":[', b'{"name":"y"},', b"true", b" " * 50, b"\0" * 9, b'"ts":',
]  # fmt: skip
ARGS = {
    "External id": 7,
    "list": [{"a": 1}, {"b": [{}, {}]}],
    "Input Dims": [[2, 3], []],
    "text": "}, {",
    "grid": [1, 2, 3],
}
TEXT = document(
    *(event(f"event {n}", args=ARGS) if n % 2 else event(f"caf\u00e9 {n}", ts=1719000000000000 + n) for n in range(9)),
    before='"deviceProperties": [{"id": 0}, {"id": 1}], ',
).replace(b"\\u00e9", "\u00e9".encode())


@given(
    st.lists(st.tuples(st.integers(0, len(TEXT)), st.integers(0, 60), st.sampled_from(FAULTS)), max_size=5),
    st.lists(st.integers(64, 700), min_size=1, max_size=3),
    st.booleans(),
)
def test_chunks_of_any_size_give_the_same(faults, sizes, cut):
    data = TEXT
    for at, removed, inserted in faults:
        data = data[:at] + inserted + data[at + removed :]
    if cut and faults:
        data = data[: faults[0][0]]
    whole = outcome(data, 1 << 20)
    for size in sizes:
        assert outcome(data, size) == whole


class TestHostileText:
    """Text made to be slow is read with bounded work."""

    @pytest.mark.parametrize(
        "text",
        [
            b'{"ph":"X","name":"' + b"abcdef" * 100000,
            b'{"ph":"X","name":"' + b'a"b' * 20000,
            b'{"ph":"X","name":"b","args":{"x":[' + b'{"a":1},{"a":2},' * 5000,
            b'{"ph":"X","name":"b","args":{"x":' + b"[" * 100000,
            b'{"a":' * 20000,
            b'{"ph":"X","args":[' * 2000,
            b'@},{"name":[' * 500,
            b"}" * 100000,
            (b"}" + b" " * 80) * 500,
            b"\0" * 100000,
        ],
    )
    def test_is_read_in_few_attempts(self, monkeypatch, text):
        seen = []

        def counted(text: bytes, start: int, stop: int, more: bool, event: bool = True) -> object:
            found = mend(text, start, stop, more, event)
            seen.append((found.resume if isinstance(found, Broken) else stop) - start)
            return found

        monkeypatch.setattr("traceanalyzer.ingest.formats.kineto.text.splitter.mend", counted)
        data = b'{"traceEvents":[' + FIRST.encode() + b"," + text + b"," + LAST.encode() + b"]}"
        splitter = Splitter(io.BytesIO(data), Events, 10000)
        assert [e.name for chunk in splitter for e in chunk.events] == ["first", "last"]
        assert splitter.dropped >= 1
        assert sum(seen) < 4 * len(data)


def test_quick_and_slow_reading_agree_on_a_captured_trace():
    data = KinetoTrace().op(0, 10, launch=(-5, -1)).op(20, 30, launch=(3, 4)).text().encode()
    assert outcome(data, 1 << 20) == outcome(data, 64)


def test_an_example_is_shown_without_its_indented_lines(load):
    trace = load(document(FIRST, "[1,\n    2]", LAST))
    assert trace.table("health").select(["message", "example"]).to_pylist() == [
        {"message": DROPPED, "example": "[1, 2]"}
    ]
