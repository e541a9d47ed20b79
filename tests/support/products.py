"""Small traces of an H100 that multiplies matrices, with the shapes of its operators."""

from __future__ import annotations

from typing import Any

from tests.support.kineto import MAIN, KinetoTrace

BF16 = "c10::BFloat16"
TENSOR = "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT"


class Program(KinetoTrace):
    """Operators of an H100 one after another, each with kernels of its own; an operator may lie within another."""

    def __init__(self, gpu: str = "NVIDIA H100 80GB HBM3", units: int = 132) -> None:
        super().__init__()
        self.metadata["deviceProperties"] = [
            {"id": 0, "name": gpu, "numSms": units, "computeMajor": 9, "computeMinor": 0, "totalGlobalMem": 1 << 36}
        ]
        self.now, self.gpu_at = 0.0, 1_000.0

    def kernel(self, length: float, name: str = TENSOR) -> Program:
        self.gpu_at = max(self.gpu_at, self.now + 10)
        self.op(self.gpu_at, self.gpu_at + length, launch=(self.now, self.now + 1), name=name)
        self.gpu_at += length
        self.now += 2
        return self

    def operator(self, name: str, *shapes: list[int], within: Any = None, types: str = BF16) -> Program:
        """An operator around what `within` does with the program."""
        start = self.now
        self.now += 1
        if within:
            within(self)
        args = {"Input Dims": list(shapes), "Input type": [types] * len(shapes)}
        self.add(cat="cpu_op", name=name, tid=MAIN, ts=start, dur=self.now - start, args=args)
        self.now += 1
        return self

    def product(self, length: float, name: str = TENSOR, types: str = BF16, size: int = 4096) -> Program:
        return self.operator(
            "aten::mm", [size, size], [size, size], within=lambda p: p.kernel(length, name), types=types
        )
