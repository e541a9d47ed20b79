"""What GPUs give: peaks of arithmetic by precision and of memory, by the names that drivers give them.

`gpus.csv` holds them, from the vendors' own data sheets and architecture papers: names, GB/s (10^9) of memory, multiprocessors or
compute units, the boost clock in MHz that the peaks are stated at (where it is), and TFLOP/s (10^12) by precision. They are dense,
without sparsity. A GPU may run below that clock (power, temperature) and for short stretches above it, so that a share of a peak can
exceed 100 % by some percent. Products in half precision are those that add in single precision, as frameworks do, which on GeForce
cards is half of the advertised figure. Of AMD's cards with two dies a device is one die, and has half of the card.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files

from traceanalyzer.records import dataclass

_VENDOR = re.compile(r"^(?:nvidia|amd|tesla|geforce|\s)+")


@dataclass(frozen=True)
class Peaks:
    """TFLOP/s by precision, and bytes per second of device memory. `fp32_matrix` and `fp64_matrix` are those of matrix units, `fp32`
    and `fp64` those of the ordinary cores."""

    tflops: Mapping[str, float]
    bytes_per_s: float
    units: int | None
    mhz: int | None
    source: str


@cache
def _by_name() -> Mapping[str, Peaks]:
    found: dict[str, Peaks] = {}
    for row in csv.DictReader(files(__package__).joinpath("gpus.csv").read_text("utf-8").splitlines()):
        names, bandwidth, units, mhz, source = (
            row.pop(column) for column in ("names", "gb_per_s", "units", "mhz", "source")
        )
        tflops = {precision: float(value) for precision, value in row.items() if value}
        peaks = Peaks(tflops, float(bandwidth) * 1e9, int(units) if units else None, int(mhz) if mhz else None, source)
        found |= {name.lower(): peaks for name in names.split("|")}
    return found


def peaks_of(name: str | None, units: int | None) -> Peaks | None:
    """By the GPU's name, as a driver or profiler gives it, and its multiprocessors as recorded (None: not recorded); None where the
    table does not have it, or it has another number of them (a part of a GPU)."""
    found = _by_name().get(_VENDOR.sub("", (name or "").lower()).strip())
    if found is None or (units and found.units and units != found.units):
        return None
    return found
