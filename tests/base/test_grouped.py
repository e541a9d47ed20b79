"""What the rows of groups come to, against the plain way to say it."""

from __future__ import annotations

from collections import defaultdict
from statistics import median

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from traceanalyzer.columns.grouped import Groups, known, text_codes

ROWS = st.lists(st.tuples(st.integers(-3, 3), st.integers(-5, 5), st.booleans()), max_size=30)


def plain(rows: list[tuple[int, int, bool]]) -> dict[int, list[tuple[int, int, bool]]]:
    """(row, value, flag) by group, in ascending order."""
    found: dict[int, list[tuple[int, int, bool]]] = defaultdict(list)
    for at, (number, value, flag) in enumerate(rows):
        found[number].append((at, value, flag))
    return dict(sorted(found.items()))


@given(ROWS)
def test_groups_are_what_they_are(rows: list[tuple[int, int, bool]]) -> None:
    number = np.array([row[0] for row in rows], np.int64)
    value, flag = np.array([row[1] for row in rows], np.int64), np.array([row[2] for row in rows], bool)
    groups, told = Groups(number), plain(rows)
    own = list(told.values())
    assert groups.keys.tolist() == list(told)
    assert len(groups) == len(told)
    assert groups.first.tolist() == [of[0][0] for of in own]
    assert groups.size.tolist() == [len(of) for of in own]
    assert groups.sum(value).tolist() == [sum(v for _, v, _ in of) for of in own]
    assert groups.max(value).tolist() == [max(v for _, v, _ in of) for of in own]
    assert groups.min(value).tolist() == [min(v for _, v, _ in of) for of in own]
    assert groups.count(flag).tolist() == [sum(f for _, _, f in of) for of in own]
    assert groups.any(flag).tolist() == [any(f for _, _, f in of) for of in own]
    assert groups.all(flag).tolist() == [all(f for _, _, f in of) for of in own]
    assert groups.distinct(value).tolist() == [len({v for _, v, _ in of}) for of in own]
    assert groups.distinct(value, flag).tolist() == [len({v for _, v, f in of if f}) for of in own]
    assert groups.median(value.astype(float)).tolist() == [median(v for _, v, _ in of) for of in own]
    assert groups.order.tolist() == [at for of in own for at, _, _ in of]
    places = {at: place for of in own for place, (at, _, _) in enumerate(of)}
    assert groups.position().tolist() == [places[at] for at in range(len(rows))]
    assert (number[groups.first][groups.of] == number).all()
    wanted = np.arange(-4, 5)
    assert [groups.keys[at] if at >= 0 else None for at in groups.find(wanted)] == [
        one if one in told else None for one in wanted.tolist()
    ]


@given(ROWS)
def test_a_quantile_leaves_out_what_is_no_number(rows: list[tuple[int, int, bool]]) -> None:
    groups = Groups(np.array([row[0] for row in rows], np.int64))
    values = np.array([float(row[1]) if row[2] else np.nan for row in rows])
    wanted = [
        float(np.quantile([v for _, v, f in of if f], 0.9)) if any(f for _, _, f in of) else np.nan
        for of in plain(rows).values()
    ]
    np.testing.assert_allclose(groups.quantile(values, 0.9), wanted, rtol=1e-12, atol=1e-12)


@given(st.lists(st.one_of(st.none(), st.text(max_size=2))))
def test_texts_as_numbers(texts: list[str | None]) -> None:
    values = np.array([*texts, None], object)[:-1]
    code, distinct = text_codes(values)
    assert [distinct[at] if at >= 0 else None for at in code] == texts
    assert distinct == list(dict.fromkeys(text for text in texts if text is not None))
    assert known(values).tolist() == [text is not None for text in texts]
