"""Which forms of credentials, names, addresses and paths are taken out of a text, and what is left alone."""

from __future__ import annotations

import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.redaction.forms import ADDRESSES, HARMLESS, MARK, TELLING
from traceanalyzer.redaction.texts import PASSES, redacted_names, redacted_text


@pytest.mark.parametrize("text", TELLING)
def test_what_tells_is_gone(text):
    shown = redacted_text(text)
    assert MARK not in shown.lower() and shown
    assert redacted_text(shown) == shown


@pytest.mark.parametrize("text", ADDRESSES)
def test_addresses_are_gone(text):
    shown = redacted_text(text)
    assert not re.search(r"\d{2}\.|\.\d|[0-9a-f]{2}:[0-9a-f]{2}|::|-\d|7300", shown)
    assert redacted_text(shown) == shown


@pytest.mark.parametrize("text", HARMLESS)
def test_what_tells_nothing_stays(text):
    assert redacted_text(text) == text


@given(
    st.sampled_from(TELLING),
    st.sampled_from(["{}", "step 3 {}", "({})", "run [{}] done", "a {} b", "x: {}", "load\n{}\nend", "{}, 3"]),
)
def test_it_is_gone_wherever_it_stands(text, around):
    shown = redacted_text(around.format(text))
    assert MARK not in shown.lower()
    assert around.split("{}")[0].rstrip(": ([\n") in shown


NAMES = ("{}", "MY_{}", "{}_OLD", "APP_{}_2", "my.{}", "x-{}")


@pytest.mark.parametrize(
    "word", ["PASSWORD", "API_KEY", "SECRET", "ACCESS_TOKEN", "CREDENTIALS", "password", "apiKey", "client-secret"]
)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "written", ["{}=%", "{}: %", '"{}": "%"', "'{}': '%'", "--{} %", "--{}=%", "{} = '%'", '\\"{}\\":\\"%\\"']
)
def test_a_secret_has_any_prefix_suffix_and_sign(word, name, written):
    text = written.format(name.format(word)).replace("%", "zq9mARKx1")
    assert "zq9" not in redacted_text(text)


@pytest.mark.parametrize("value", ["None", "True", "", "str", "${VAR}", "***", "<password>", "Optional"])
def test_a_name_without_a_value_stays(value):
    text = f"password={value} next=1"
    assert redacted_text(text) == text


def test_many_names_are_changed_as_one_is():
    texts = [*TELLING, *ADDRESSES, *HARMLESS]
    expected = {text: shown for text in texts if (shown := redacted_text(text)) != text}
    assert redacted_names(pa.array([*texts, None])) == expected
    assert all(any(re.search(one.hint, text) for one in PASSES) for text in expected)


@given(st.text(alphabet="aA0._-/\\:=@'\"<>()[]{}, ~%+\n?#&;", max_size=80))
def test_any_text_can_be_redacted_twice_and_hints_tell(text):
    once = redacted_text(text)
    assert redacted_text(once) == once
    if once != text:
        assert redacted_names(pa.array([text])) == {text: once}


@pytest.mark.parametrize(
    "piece",
    [
        "a-/",
        "/a",
        "C:\\a ",
        "a:b@",
        "=a:",
        'a="',
        "a='",
        '\\"',
        "password='",
        "eyJa.",
        "sk-a",
        "<password>",
        "/home/a b ",
        "token: ",
        "1.",
        "0:",
        "ab:",
        "a.",
        "\\\\a\\",
        "-----BEGIN PRIVATE KEY-----",
        "+/",
        "--a ",
        "cookie: a\n",
    ],
)
def test_a_long_name_of_anything_ends(piece):
    """Were the time not linear this would take hours."""
    text = piece * (300_000 // len(piece))
    assert redacted_text(text) is not None
