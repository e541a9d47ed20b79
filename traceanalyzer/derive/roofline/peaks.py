"""What GPUs give: peaks of arithmetic by precision and of memory, by the names that drivers give them.

From the vendors' own data sheets and architecture papers, dense (without sparsity), at the boost clock that they state; `clock` is that
clock, as far as it is stated. A GPU may run below it (power, temperature) and for short stretches above it, so that a share of a peak can
exceed 100 % by a few percent. Products in half precision are those that add in single precision, as frameworks do, which on GeForce cards is
half of the advertised figure. Of AMD's two-die cards a device is one die, and has half of the card.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Peaks:
    """TFLOP/s (10^12) by precision, GB/s (10^9) of device memory, multiprocessors (or compute units) and MHz.

    `fp32_matrix` and `fp64_matrix` are those of matrix units, `fp32` and `fp64` those of the ordinary cores.
    """

    tflops: Mapping[str, float]
    bandwidth: float
    units: int | None = None
    clock: int | None = None
    source: str = ""


def _peaks(
    bandwidth: float, units: int | None, clock: int | None, source: str, half: float | None = None, **others: float
) -> Peaks:
    """`half` is the peak of fp16 and bf16; a GPU without bf16 gives fp16 alone."""
    both = {} if half is None else {"fp16": half, "bf16": half}
    return Peaks({**both, **others}, bandwidth, units, clock, source)


_HOPPER = "NVIDIA H100 Tensor Core GPU Architecture, v1.04; H100 data sheet"
_H200 = "NVIDIA H200 data sheet"
_AMPERE = "NVIDIA A100 Tensor Core GPU Architecture, v1.0; A100 data sheet"
_ADA = "NVIDIA Ada GPU Architecture, v2.1"
_BLACKWELL = "NVIDIA RTX Blackwell GPU Architecture, v1.1"
_DGX = "NVIDIA DGX B200 and GB200 NVL72 data sheets"
_CDNA2 = "AMD Instinct MI200 series data sheets"
_CDNA3 = "AMD Instinct MI300 series data sheets"
_CDNA4 = "AMD Instinct MI350 series data sheets"

_H100 = {
    "fp64": 33.5, "fp64_matrix": 66.9, "fp32": 66.9, "tf32": 494.7, "half": 989.4, "fp8": 1978.9, "int8": 1978.9,
}  # fmt: skip
_H100_NVL = {
    "fp64": 30.0, "fp64_matrix": 60.0, "fp32": 60.0, "tf32": 417.5, "half": 835.5, "fp8": 1670.5, "int8": 1670.5,
}  # fmt: skip
_H100_PCIE = {
    "fp64": 25.6, "fp64_matrix": 51.2, "fp32": 51.2, "tf32": 378.0, "half": 756.0, "fp8": 1513.0, "int8": 1513.0,
}  # fmt: skip
_A100 = {"fp64": 9.7, "fp64_matrix": 19.5, "fp32": 19.5, "tf32": 156.0, "half": 312.0, "int8": 624.0}
_B200 = {"fp64": 37.0, "fp64_matrix": 37.0, "fp32": 75.0, "tf32": 1100.0, "half": 2250.0, "fp8": 4500.0, "int8": 4500.0, "fp4": 9000.0}  # fmt: skip
_GB200 = {"fp64": 40.0, "fp64_matrix": 40.0, "fp32": 80.0, "tf32": 1250.0, "half": 2500.0, "fp8": 5000.0, "int8": 5000.0, "fp4": 10000.0}  # fmt: skip
_MI300X = {
    "fp64": 81.7, "fp64_matrix": 163.4, "fp32": 163.4, "fp32_matrix": 163.4, "tf32": 653.7, "half": 1307.4, "fp8": 2614.9, "int8": 2614.9,
}  # fmt: skip

_GPUS: tuple[tuple[tuple[str, ...], Peaks], ...] = (
    (("H100 80GB HBM3", "H100 SXM5 80GB", "H100 80GB HBM2e SXM"), _peaks(3352, 132, 1830, _HOPPER, **_H100)),
    (("H100 PCIe",), _peaks(2039, 114, 1755, _HOPPER, **_H100_PCIE)),
    (("H100 NVL",), _peaks(3938, 132, None, _HOPPER, **_H100_NVL)),
    (("H200",), _peaks(4800, 132, 1830, _H200, **_H100)),
    (("H200 NVL",), _peaks(4800, 132, None, _H200, **_H100_NVL)),
    (("GH200 480GB",), _peaks(4000, 132, 1830, "NVIDIA GH200 data sheet", **_H100)),
    (("GH200 144G HBM3e",), _peaks(4900, 132, 1830, "NVIDIA GH200 data sheet", **_H100)),
    (("H800",), _peaks(3352, 132, 1830, _HOPPER, **{**_H100, "fp64": 1.0, "fp64_matrix": 1.0})),
    (
        ("H20",),
        _peaks(4000, 78, None, "NVIDIA H20 data sheet", 148.0, fp64=1.0, fp64_matrix=1.0, fp32=44.0, tf32=74.0, fp8=296.0, int8=296.0),
    ),
    (
        ("A100-SXM4-40GB", "A100-SXM-40GB", "A100-PCIE-40GB", "A800-SXM4-40GB"),
        _peaks(1555, 108, 1410, _AMPERE, **_A100),
    ),
    (("A100-SXM4-80GB", "A100-SXM-80GB", "A800-SXM4-80GB"), _peaks(2039, 108, 1410, _AMPERE, **_A100)),
    (("A100 80GB PCIe", "A800 80GB PCIe"), _peaks(1935, 108, 1410, _AMPERE, **_A100)),
    (("A30",), _peaks(933, 56, 1440, "NVIDIA A30 data sheet", 165.0, fp64=5.2, fp64_matrix=10.3, fp32=10.3, tf32=82.0, int8=330.0)),
    (("A40",), _peaks(696, 84, 1740, "NVIDIA A40 data sheet", 149.7, fp32=37.4, tf32=74.8, int8=299.3)),
    (("A10",), _peaks(600, 72, 1695, "NVIDIA A10 data sheet", 125.0, fp32=31.2, tf32=62.5, int8=250.0)),
    (("A10G",), _peaks(600, 80, None, "NVIDIA A10G data sheet", 70.0, fp32=35.0, tf32=35.0, int8=140.0)),
    (("RTX A6000",), _peaks(768, 84, 1800, "NVIDIA RTX A6000 data sheet", 154.8, fp32=38.7, tf32=77.4, int8=309.7)),
    (("RTX A5000",), _peaks(768, 64, 1695, "NVIDIA RTX A5000 data sheet", 111.1, fp32=27.8, tf32=55.6, int8=222.2)),
    (("L4",), _peaks(300, 58, None, "NVIDIA L4 data sheet", 121.0, fp32=30.3, tf32=60.0, fp8=242.5, int8=242.5)),
    (("L40",), _peaks(864, 142, 2490, "NVIDIA L40 data sheet", 181.0, fp32=90.5, tf32=90.5, fp8=362.0, int8=362.0)),
    (("L40S",), _peaks(864, 142, 2520, "NVIDIA L40S data sheet", 362.0, fp32=91.6, tf32=183.0, fp8=733.0, int8=733.0)),
    (("RTX 6000 Ada Generation",), _peaks(960, 142, 2505, _ADA, 364.2, fp32=91.1, tf32=182.1, fp8=728.5, int8=728.5)),
    (
        ("V100-SXM2-16GB", "V100-SXM2-32GB"),
        _peaks(900, 80, 1530, "NVIDIA V100 data sheet", fp64=7.8, fp32=15.7, fp16=125.0),
    ),
    (("V100-PCIE-16GB", "V100-PCIE-32GB"), _peaks(900, 80, 1380, "NVIDIA V100 data sheet", fp64=7.0, fp32=14.0, fp16=112.0)),
    (("V100S-PCIE-32GB",), _peaks(1134, 80, 1597, "NVIDIA V100 data sheet", fp64=8.2, fp32=16.4, fp16=130.0)),
    (("T4",), _peaks(320, 40, 1590, "NVIDIA T4 data sheet", fp32=8.1, fp16=65.0, int8=130.0)),
    (("RTX 3090",), _peaks(936, 82, 1695, "NVIDIA Ampere GA102 GPU Architecture, v2", 71.0, fp32=35.6, tf32=35.6, int8=284.0)),
    (("RTX 3090 Ti",), _peaks(1008, 84, 1860, _ADA, 80.0, fp32=40.0, tf32=40.0, int8=320.0)),
    (("RTX 3080",), _peaks(760, 68, 1710, "NVIDIA Ampere GA102 GPU Architecture, v2", 59.5, fp32=29.8, tf32=29.8, int8=238.0)),
    (("RTX 4090",), _peaks(1008, 128, 2520, _ADA, 165.2, fp32=82.6, tf32=82.6, fp8=330.3, int8=660.6)),
    (("RTX 4080",), _peaks(717, 76, 2505, _ADA, 97.5, fp32=48.7, tf32=48.7, fp8=194.9, int8=389.9)),
    (("RTX 5090",), _peaks(1792, 170, 2407, _BLACKWELL, 209.5, fp32=104.8, tf32=104.8, fp8=419.0, int8=838.0)),
    (("RTX 5080",), _peaks(960, 84, 2617, _BLACKWELL, 112.6, fp32=56.3, tf32=56.3, fp8=225.1, int8=450.2)),
    (("B200",), _peaks(8000, 148, None, _DGX, **_B200)),
    (("GB200",), _peaks(8000, None, None, _DGX, **_GB200)),
    (
        ("Instinct MI100",),
        _peaks(1229, 120, 1502, "AMD Instinct MI100 data sheet", fp64=11.5, fp32=23.1, fp32_matrix=46.1, fp16=184.6, bf16=92.3, int8=184.6),
    ),
    (
        ("Instinct MI210",),
        _peaks(1638, 104, 1700, _CDNA2, 181.0, fp64=22.6, fp64_matrix=45.3, fp32=22.6, fp32_matrix=45.3, int8=181.0),
    ),
    (
        ("Instinct MI250",),
        _peaks(1638, 104, 1700, _CDNA2, 181.0, fp64=22.6, fp64_matrix=45.3, fp32=22.6, fp32_matrix=45.3, int8=181.0),
    ),
    (
        ("Instinct MI250X",),
        _peaks(1638, 110, 1700, _CDNA2, 191.5, fp64=23.9, fp64_matrix=47.9, fp32=23.9, fp32_matrix=47.9, int8=191.5),
    ),
    (
        ("Instinct MI300A",),
        _peaks(5300, 228, 2100, _CDNA3, 980.6, fp64=61.3, fp64_matrix=122.6, fp32=122.6, fp32_matrix=122.6, tf32=490.3, fp8=1961.2, int8=1961.2),
    ),
    (("Instinct MI300X", "Instinct MI300X OAM"), _peaks(5300, 304, 2100, _CDNA3, **_MI300X)),
    (("Instinct MI325X", "Instinct MI325X OAM"), _peaks(6000, 304, 2100, _CDNA3, **_MI300X)),
    (
        ("Instinct MI350X",),
        _peaks(8000, 256, 2200, _CDNA4, 2306.9, fp64=72.1, fp64_matrix=72.1, fp32=144.2, fp32_matrix=144.2, fp8=4613.7, int8=4613.7),
    ),
    (
        ("Instinct MI355X",),
        _peaks(8000, 256, 2400, _CDNA4, 2516.6, fp64=78.6, fp64_matrix=78.6, fp32=157.3, fp32_matrix=157.3, fp8=5033.2, int8=5033.2),
    ),
)  # fmt: skip
_VENDOR = re.compile(r"^(?:nvidia|amd|tesla|geforce|\s)+")


def _entries() -> Iterator[tuple[str, Peaks]]:
    for names, peaks in _GPUS:
        for name in names:
            yield name.lower(), peaks


_BY_NAME = dict(_entries())


def peaks_of(name: str | None, units: int | None) -> Peaks | None:
    """By the GPU's name, as a driver or profiler gives it, and its multiprocessors as recorded (None: not recorded); None where the table
    does not have it, or it has another number of them (a part of a GPU)."""
    found = _BY_NAME.get(_VENDOR.sub("", (name or "").lower()).strip())
    if found is None or (units and found.units and units != found.units):
        return None
    return found
