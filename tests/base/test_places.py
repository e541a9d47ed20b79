"""Places in a program as texts: what puts one together is what takes it apart."""

from __future__ import annotations

import pytest

from traceanalyzer.places import frame_parts, line_of, place_parts, place_text


@pytest.mark.parametrize("what", ["aten::item", "x called from y", "loop.py:3 (f)"])
@pytest.mark.parametrize("source", ["train.py:41 (train_step)", "my code.py:7 (<lambda>)"])
def test_a_place_is_taken_apart_as_it_was_put_together(what: str, source: str) -> None:
    assert place_parts(place_text(what, source, None)) == (what, source)


def test_what_has_no_source_or_line_is_left_as_it_is() -> None:
    assert place_parts("aten::item in epoch 3") == ("aten::item in epoch 3", None)
    assert line_of("train.py:41 (train_step)") == ("train.py:41", "41")
    assert line_of("my code.py:7 (<lambda>)") == ("my code.py:7", "7")
    assert frame_parts("train.py:41 (train_step)") == ("train.py:41", "train_step")
    assert line_of("aten::item") is None and frame_parts("aten::item") is None
