"""Colours that can be told apart, also by readers who see no red or no green; and hatchings, by those who see none at all."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from traceanalyzer.report.hatches import HATCHES, STRENGTH
from traceanalyzer.report.palette import (
    API_CLASS_KEYS,
    BY_KEY,
    GPU_OP_KEYS,
    RANGE_KEYS,
    SWATCHES,
    ink_on,
    luminance,
)

# From linear RGB: what dichromats see (Machado, Oliveira and Fernandes 2009), and CIE XYZ over the white point.
EYES = {
    "all cones": np.eye(3),
    "no green": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]]
    ),
    "no red": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
}
NO_BLUE = np.array([[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]])
GREY = np.tile([0.2126, 0.7152, 0.0722], (3, 1))
EVERY_EYE = EYES | {"no blue": NO_BLUE, "greyscale": GREY}
XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]])
LEAST = {"all cones": 18, "no green": 10, "no red": 9}
LEDGER = [
    s.key
    for s in SWATCHES
    if s.key == "compute" or (s.key.startswith(("idle.", "exposed_")) and s.key != "exposed_transfer")
]
"""Exposed transfer stands where exposed communication would, and looks like it."""
GPU = {*GPU_OP_KEYS.values(), "communication", "communication_wait", "annotation"}
HOST = {*API_CLASS_KEYS.values(), *RANGE_KEYS.values(), "api"}


def lab(colour: str, eyes: str) -> np.ndarray:
    """CIE L*a*b*, in which a distance of 2 to 3 can just be seen."""
    light = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(EVERY_EYE[eyes] @ linear, 0, 1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("paper", ["light", "dark"])
@pytest.mark.parametrize("together", [LEDGER, GPU, HOST], ids=["ledger", "gpu", "host"])
def test_colours_that_lie_together_differ(together: list[str], paper: str, eyes: str) -> None:
    seen = {key: lab(getattr(BY_KEY[key], paper), eyes) for key in sorted(together)}
    close = {(a, b): np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2)}
    assert {pair for pair, distance in close.items() if distance < LEAST[eyes]} == set()


def test_no_two_lines_of_a_ledger_have_the_same_hatching() -> None:
    hatchings = [BY_KEY[key].hatch for key in LEDGER]
    assert len(set(hatchings)) == len(hatchings) == 18 and all(one in HATCHES for one in hatchings if one)
    paths = [hatch.path for hatch in HATCHES.values()]
    assert len(set(paths)) == len(paths)


LANES = {
    "gpu": {"compute", "communication", "communication_wait", "memcpy", "memset"},
    "calls": {*API_CLASS_KEYS.values(), "api"},
}
"""What can lie next to each other in one lane, which says what kind of thing it holds."""


@pytest.mark.parametrize("eyes", EVERY_EYE)
@pytest.mark.parametrize("paper", ["light", "dark"])
@pytest.mark.parametrize("lane", LANES)
def test_neighbours_differ_in_hatching_or_else_for_every_eye(lane: str, paper: str, eyes: str) -> None:
    for a, b in combinations(sorted(LANES[lane]), 2):
        if BY_KEY[a].hatch == BY_KEY[b].hatch:
            distance = np.linalg.norm(lab(getattr(BY_KEY[a], paper), eyes) - lab(getattr(BY_KEY[b], paper), eyes))
            assert distance >= 5, (a, b)


@pytest.mark.parametrize("paper", ["light", "dark"])
def test_hatchings_stand_out_from_their_colour(paper: str) -> None:
    for swatch in SWATCHES:
        if swatch.hatch:
            colour = getattr(swatch, paper)
            ink = 0 if ink_on(colour) == "#000000" else 255
            mixed = (round(int(colour[at : at + 2], 16) * (1 - STRENGTH) + ink * STRENGTH) for at in (1, 3, 5))
            light, dark = sorted(
                (luminance(colour), luminance("#" + "".join(f"{one:02x}" for one in mixed))), reverse=True
            )
            assert (light + 0.05) / (dark + 0.05) >= 1.8, swatch.key


def test_a_kind_of_event_has_the_colour_of_its_ledger_line() -> None:
    for one, line in (
        ("communication", "exposed_communication"),
        ("communication", "exposed_transfer"),
        ("communication_wait", "exposed_wait"),
        ("memcpy", "exposed_memcpy"),
        ("call.sync", "idle.synchronization"),
    ):
        looks = [(swatch.light, swatch.dark, swatch.hatch) for swatch in (BY_KEY[one], BY_KEY[line])]
        assert looks[0] == looks[1]
