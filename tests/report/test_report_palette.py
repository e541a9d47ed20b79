"""Colours that can be told apart, also by readers who see no red or no green."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from traceanalyzer.report.palette import API_CLASS_KEYS, BY_KEY, GPU_OP_KEYS, RANGE_KEYS, SWATCHES

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
XYZ = np.array([[0.4339, 0.3762, 0.1899], [0.2126, 0.7152, 0.0722], [0.0177, 0.1095, 0.8728]])
LEAST = {"all cones": 18, "no green": 10, "no red": 9}
LEDGER = [s.key for s in SWATCHES if s.key == "compute" or s.key.startswith(("idle.", "exposed_"))]
GPU = {*GPU_OP_KEYS.values(), "communication", "communication_wait", "annotation"}
HOST = {*API_CLASS_KEYS.values(), *RANGE_KEYS.values(), "api"}


def lab(colour: str, eyes: str) -> np.ndarray:
    """CIE L*a*b*, in which a distance of 2 to 3 can just be seen."""
    light = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    linear = np.where(light <= 0.04045, light / 12.92, ((light + 0.055) / 1.055) ** 2.4)
    xyz = XYZ @ np.clip(EYES[eyes] @ linear, 0, 1)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", EYES)
@pytest.mark.parametrize("paper", ["light", "dark"])
@pytest.mark.parametrize("together", [LEDGER, GPU, HOST], ids=["ledger", "gpu", "host"])
def test_colours_that_lie_together_differ(together: list[str], paper: str, eyes: str) -> None:
    seen = {key: lab(getattr(BY_KEY[key], paper), eyes) for key in sorted(together)}
    close = {(a, b): np.linalg.norm(seen[a] - seen[b]) for a, b in combinations(seen, 2)}
    assert {pair for pair, distance in close.items() if distance < LEAST[eyes]} == set()


def test_a_kind_of_event_has_the_colour_of_its_ledger_line() -> None:
    for one, line in (
        ("communication", "exposed_communication"),
        ("memcpy", "exposed_memcpy"),
        ("call.sync", "idle.synchronization"),
    ):
        assert (BY_KEY[one].light, BY_KEY[one].dark) == (BY_KEY[line].light, BY_KEY[line].dark)
