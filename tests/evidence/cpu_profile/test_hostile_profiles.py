"""Profiles that are cut, empty, of another version or full of numbers that cannot be: one line, or a note of what was left out."""

from __future__ import annotations

import gzip
import json
import random

import pytest

from tests.evidence.cpu_profile import makers as make
from tests.evidence.cpu_profile.test_reading import FORMS
from traceanalyzer.errors import InputError


def text_of(form: str) -> bytes:
    data = FORMS[form]
    raw = data if isinstance(data, bytes) else data.encode() if isinstance(data, str) else json.dumps(data).encode()
    return gzip.decompress(raw) if raw[:2] == b"\x1f\x8b" else raw


@pytest.mark.parametrize("form", FORMS)
def test_cut_anywhere(tmp_path, form):
    """It is read with a note, or refused in one line; where it is too short to be told, it is of no kind."""
    text = text_of(form)
    chance = random.Random(7)
    for at in sorted(chance.sample(range(1, len(text)), 60)):
        path = make.write(tmp_path / "x", text[:at])
        try:
            _, sink = make.read(path)
        except make.NoProfileError:
            continue
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            assert make.threads(sink)[0]["weight"] > 0


@pytest.mark.parametrize("form", FORMS)
def test_bytes_that_are_changed_do_no_harm(tmp_path, form):
    text = text_of(form)
    chance = random.Random(11)
    for _ in range(60):
        changed = bytearray(text)
        for _ in range(chance.randint(1, 4)):
            changed[chance.randrange(len(changed))] = chance.randrange(256)
        path = make.write(tmp_path / "x", bytes(changed))
        try:
            _, sink = make.read(path)
        except make.NoProfileError:
            continue
        except InputError as error:
            assert str(path) in str(error) and "\n" not in str(error)
        else:
            make.threads(sink)
            make.functions(sink)


@pytest.mark.parametrize(
    "change, words",
    [
        ({"weights": [-1.0] * 80}, "weights that no recording has"),
        ({"weights": [1e300] * 80}, "weights that no recording has"),
        ({"weights": ["1,5"] * 80}, "damaged samples"),
        ({"samples": [["a"]] * 80}, "damaged samples"),
        ({"samples": [[[1]]] * 80}, "damaged samples"),
        ({"samples": [], "weights": []}, "without any sample"),
        ({"weights": [0.0] * 80}, "without any sample"),
        ({"startValue": 1e200}, "times that no recording has"),
        ({"samples": "none"}, "damaged"),
    ],
)
def test_impossible_numbers_of_speedscope(tmp_path, change, words):
    with pytest.raises(InputError, match=words) as raised:
        make.read(tmp_path / "x", make.speedscope(**change))
    assert "\n" not in str(raised.value)


def test_nan_is_damaged_json(tmp_path):
    with pytest.raises(InputError, match="damaged JSON"):
        make.read(tmp_path / "x", json.dumps(make.speedscope()).replace("10000000", "NaN", 1))


def test_what_speedscope_does_not_describe_is_counted(tmp_path):
    data = make.speedscope()
    data["profiles"][0]["samples"][0] = [10**30]
    data["profiles"][0]["weights"].pop()
    _, sink = make.read(tmp_path / "x", data)
    assert sorted((message, count) for _, _, message, count in sink.notes) == [
        ("left out of a CPU profile: samples without a weight, or weights without a sample", 1),
        ("parts of a CPU profile could not be read", 1),
    ]


def test_lines_that_are_none_are_counted(tmp_path):
    good = make.folded() * 3
    for text, lost in ((good + "a;b;c", 1), (good.replace("40\n", "40,5\n", 1) + "x;y 3\n" * 2000, None)):
        try:
            _, sink = make.read(tmp_path / "x", text)
        except make.NoProfileError:
            assert lost is None
            continue
        assert [(code, count) for code, _, _, count in sink.notes] == [("TRC001", lost)]
    far = "a;b 1\n" * 20_000
    _, sink = make.read(tmp_path / "x", far + "a;b 1,5\na;b 1'000\n" + far)
    assert [(code, count) for code, _, _, count in sink.notes] == [("TRC001", 2)]


def test_deep_stacks_end_somewhere(tmp_path):
    deep = ";".join(["f (a.py:1)"] * 50_000)
    _, sink = make.read(tmp_path / "x", f"a;b 1\n{deep} 3\n")
    assert sink.tables()["profile_stacks"].num_rows < 3000
    assert make.threads(sink)[0]["weight"] == 4


def test_many_samples_of_few_stacks(tmp_path):
    _, sink = make.read(tmp_path / "x", make.speedscope([make.WORK, (make.MAIN,)] * 300_000, 1000))
    assert sink.tables()["profile_stacks"].num_rows == 4
    assert ("tokenize → merge (data.py:17)", 300_000_000) in make.functions(sink)


def test_hostile_names(tmp_path):
    text = "thread (7): \x1b[31m;f\x1b]0;x\x07 (a.py:1);g (b;c.py:2) 3\n"
    try:
        _, sink = make.read(tmp_path / "x", text)
    except make.NoProfileError:
        return
    make.functions(sink)
