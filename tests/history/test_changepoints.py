"""Levels of a series: what is algebra of them, steps that are found in their night, and what is no step."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traceanalyzer.result.history.changepoints import FEWEST, Levels, levels_of, noise_of

LEAST = 1e-6
SEEDS = st.integers(0, 2**32 - 1)
VALUES = st.lists(st.integers(-1000, 1000), min_size=1, max_size=60)


def series(seed: int, count: int = 40) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 1, count)


def borders(levels: Levels) -> list[tuple[int, int]]:
    return [(part.first, part.end) for part in levels.parts]


@given(VALUES, st.integers(-30, 30))
def test_a_scaled_series_has_its_levels_scaled(values: list[int], power: int) -> None:
    plain, factor = np.array(values, np.float64), 2.0**power
    one, other = levels_of(plain, 1.0), levels_of(plain * factor, factor)
    assert borders(one) == borders(other)
    assert [part.mean * factor for part in one.parts] == [part.mean for part in other.parts]
    assert one.noise * factor == other.noise
    assert one.far == other.far


@given(SEEDS, st.integers(-50, 50), st.integers(0, 39), st.floats(-30, 30))
@settings(derandomize=True)
def test_a_shifted_series_has_its_levels_shifted(seed: int, by: int, at: int, step: float) -> None:
    values = series(seed)
    values[at:] += step
    one, other = levels_of(values, LEAST), levels_of(values + by, LEAST)
    assert borders(one) == borders(other)
    assert [part.mean + by for part in one.parts] == pytest.approx([part.mean for part in other.parts])
    assert one.noise == pytest.approx(other.noise)


@given(VALUES)
def test_a_mirrored_series_has_its_levels_mirrored(values: list[int]) -> None:
    plain = np.array(values, np.float64)
    one, other = levels_of(plain, 1.0), levels_of(-plain, 1.0)
    assert borders(one) == borders(other)
    assert [-part.mean for part in one.parts] == [part.mean for part in other.parts]


@given(VALUES)
def test_the_parts_cover_the_series(values: list[int]) -> None:
    parts = levels_of(np.array(values, np.float64), 1.0).parts
    assert [at for part in parts for at in range(part.first, part.end)] == list(range(len(values)))
    assert all(part.count >= 2 for part in parts) or len(parts) == 1
    assert all(min(values[part.first : part.end]) <= part.mean <= max(values[part.first : part.end]) for part in parts)


@given(SEEDS, st.integers(0, 39), st.floats(5, 1e6), st.booleans())
@settings(derandomize=True)
def test_a_single_far_value_makes_no_level(seed: int, at: int, off: float, up: bool) -> None:
    values = np.random.default_rng(seed).uniform(-1, 1, 40)
    values[at] = (1 + off) * (1 if up else -1)
    levels = levels_of(values, LEAST)
    assert len(levels.parts) == 1
    assert abs(levels.parts[0].mean) < 1
    assert set(levels.far) <= {at}


@given(SEEDS, st.integers(4, 36), st.floats(8, 1e3), st.booleans())
@settings(derandomize=True)
def test_a_large_step_is_found_in_its_night(seed: int, at: int, step: float, up: bool) -> None:
    values = np.clip(series(seed), -2, 2)
    values[at:] += step if up else -step
    assert borders(levels_of(values, LEAST)) == [(0, at), (at, 40)]


def test_a_step_up_and_back_makes_three_levels() -> None:
    values = series(1)
    values[10:30] += 10
    levels = levels_of(values, LEAST)
    assert borders(levels) == [(0, 10), (10, 30), (30, 40)]
    assert [round(part.mean / 10) for part in levels.parts] == [0, 1, 0]


def test_two_steps_in_one_direction_are_told_apart() -> None:
    values = series(2)
    values[15:] += 8
    values[25:] += 8
    assert borders(levels_of(values, LEAST)) == [(0, 15), (15, 25), (25, 40)]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=FEWEST - 1))
def test_few_values_are_one_level(values: list[float]) -> None:
    assert borders(levels_of(np.array(values), LEAST)) == [(0, len(values))]


def test_equal_values_are_one_level_without_error_beyond_the_least() -> None:
    levels = levels_of(np.full(20, 3.0), 0.5)
    assert borders(levels) == [(0, 20)]
    assert (levels.noise, levels.far, levels.parts[0].mean) == (0.5, [], 3.0)


def test_the_noise_is_the_deviation_whatever_steps_and_far_values_there_are() -> None:
    values = np.random.default_rng(0).normal(0, 2, 4000)
    assert noise_of(values) == pytest.approx(2, rel=0.05)
    values[2000:] += 100
    values[::50] += 300
    assert noise_of(values) == pytest.approx(2, rel=0.1)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 5.0]])
def test_two_values_tell_no_noise(values: list[float]) -> None:
    assert noise_of(np.array(values)) == 0.0


def test_far_values_are_named_and_count_little() -> None:
    values = series(3)
    values[[7, 21]] += 50
    levels = levels_of(values, LEAST)
    assert levels.far == [7, 21]
    assert abs(levels.parts[0].mean) < 1


def test_neighbours_that_are_alike_make_the_level_less_sure() -> None:
    alone = series(5, 400)
    alike = np.zeros(400)
    for at in range(1, 400):
        alike[at] = 0.6 * alike[at - 1] + 0.8 * alone[at]
    one, other = levels_of(alone, LEAST), levels_of(alike, LEAST)
    assert one.noise == pytest.approx(noise_of(alone))
    assert other.noise > 1.5 * noise_of(alike)
    assert len(other.parts) == len(one.parts) == 1
