"""Patterns of operators that waste work, and what looks like them and is not."""

from __future__ import annotations

from typing import Any

import pytest

import traceanalyzer as ta
from tests.support.kineto import AUTOGRAD, MAIN, KinetoTrace
from traceanalyzer.catalog.catalog import Catalog

HALF, FLOAT = "c10::Half", "float"


class Program(KinetoTrace):
    """Operators one after another on the main thread, each with the kernels that it launches."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 0.0

    def run(
        self,
        name: str,
        *inputs: Any,
        types: list[str] | None = None,
        inside: tuple[Any, ...] = (),
        kernels: int = 1,
        copy: str = "",
    ) -> Program:
        """An operator with these input shapes; `inside` are (name, *inputs) of operators within it that launch nothing."""
        start = self.now
        self.now += 1
        for inner, *shapes in inside:
            self._operator(inner, self.now, self.now + 1, shapes, None)
            self.now += 2
        for _ in range(kernels):
            self.op(self.now + 50, self.now + 51, launch=(self.now, self.now + 1))
            self.now += 2
        if copy:
            self.op(
                self.now + 50, self.now + 51, launch=(self.now, self.now + 1), name=copy, category="gpu_memcpy", bytes=4
            )
            self.now += 2
        self._operator(name, start, self.now, list(inputs), types)
        self.now += 1
        return self

    def _operator(self, name: str, start: float, end: float, shapes: list[Any], types: list[str] | None) -> None:
        args = {"Input Dims": shapes, "Input type": types or [FLOAT] * len(shapes)}
        self.add(cat="cpu_op", name=name, tid=MAIN, ts=start, dur=end - start, args=args)

    def within(self, name: str, start: float, category: str = "user_annotation", thread: int = MAIN) -> Program:
        self.range(name, start, self.now, category=category, thread=thread)
        return self


@pytest.fixture
def found(tmp_path):
    """(pattern, operator, count, detail) of each occurrence."""

    def of(trace: KinetoTrace) -> list[tuple[Any, ...]]:
        rows = Catalog(ta.load(trace.write(tmp_path / "t.json"))).table("patterns").to_pylist()
        return [tuple(row[key] for key in ("pattern", "operator", "count", "detail")) for row in rows]

    return of


def move(program: Program, shape: list[int]) -> Program:
    return program.run("aten::to", shape, [], kernels=0, copy="Memcpy HtoD (Pageable -> Device)")


class TestExtraCopies:
    def test_noise_drawn_on_the_host(self, found):
        program = Program().run(
            "aten::randn", [], inside=(("aten::empty", []), ("aten::normal_", [64, 512])), kernels=0
        )
        assert found(move(program, [64, 512])) == [("extra_device_copy", "aten::randn", 1, "64×512")]

    def test_a_fill_of_an_existing_tensor(self, found):
        program = move(Program().run("aten::fill_", [64], [], kernels=0), [64])
        assert found(program) == [("extra_device_copy", "aten::fill_", 1, "64")]

    def test_with_python_frames_in_between(self, found):
        program = Program().run("aten::zeros", [], inside=(("aten::zero_", [8, 8]),), kernels=0)
        program.within("<built-in method zeros of type object at 0x7f>", -0.5, "python_function")
        program = move(program, [8, 8])
        program.within("train.py(41): step", -1, "python_function")
        assert found(program) == [("extra_device_copy", "aten::zeros", 1, "8×8")]

    def test_another_tensor_is_moved(self, found):
        program = Program().run("aten::zeros", [], inside=(("aten::zero_", [100]),), kernels=0)
        assert found(move(program, [64, 512])) == []

    def test_something_is_done_with_it_on_the_host_first(self, found):
        program = Program().run("aten::rand", [], inside=(("aten::uniform_", [64]),), kernels=0)
        assert found(move(program.run("aten::sort", [64], kernels=0), [64])) == []

    def test_made_on_the_gpu(self, found):
        program = Program().run("aten::rand", [], inside=(("aten::uniform_", [64]),), kernels=1)
        assert found(move(program, [64])) == []

    def test_a_conversion_is_no_move(self, found):
        program = Program().run("aten::zeros", [], inside=(("aten::zero_", [64]),), kernels=0)
        assert found(program.run("aten::to", [64], [], kernels=1)) == []


class TestLoops:
    def test_rows_of_a_batch(self, found):
        program = Program()
        for _ in range(64):
            program.run("aten::select", [64, 128], [], [], kernels=0).run("aten::mul", [128], []).run(
                "aten::add", [128], []
            )
        assert found(program) == [("loop_indexing", "aten::select", 64, "64×128")]

    def test_elements_of_two_tensors(self, found):
        program = Program().run("aten::mul", [3], [3])
        for _ in range(12):
            program.run("aten::select", [12, 4], [], [], kernels=0).run("aten::select", [12, 5], [], [], kernels=0).run(
                "aten::dot", [4], [5]
            )
        assert [row[:3] for row in found(program.run("aten::stack"))] == [("loop_indexing", "aten::select", 12)]

    @pytest.mark.parametrize("rounds", [3, 9])
    def test_a_few_parts_are_no_loop(self, found, rounds):
        program = Program()
        for _ in range(rounds):
            program.run("aten::select", [64, 128], [], [], kernels=0).run("aten::mul", [128], [])
        assert found(program) == []

    def test_a_recurrence(self, found):
        program = Program()
        for _ in range(64):
            program.run("aten::select", [64, 128], [], [], kernels=0).run("aten::matmul", [1, 128], [128, 128]).run(
                "aten::tanh", [1, 128]
            )
        assert found(program) == []

    def test_the_parts_of_an_attention_projection(self, found):
        program = Program()
        for _ in range(24):
            for _ in range(3):
                program.run("aten::select", [3, 16, 128], [], [], kernels=0)
            program.run("aten::scaled_dot_product_attention", [16, 128], [16, 128], [16, 128]).run(
                "aten::linear", [16, 128], [128, 128]
            )
        assert found(program) == []

    def test_taking_a_tensor_apart_starts_no_work(self, found):
        program = Program().run(
            "aten::unbind", [64, 128], inside=tuple(("aten::select", [64, 128]) for _ in range(64)), kernels=1
        )
        assert found(program) == []

    def test_a_list_of_tensors(self, found):
        program = Program()
        for n in range(64):
            program.run("aten::select", [64 + n, 128], [], [], kernels=0).run("aten::mul", [128], [])
        assert found(program) == []


class TestGradients:
    @pytest.mark.parametrize(
        ("name", "category"),
        [
            ("Optimizer.zero_grad#SGD.zero_grad", "user_annotation"),
            ("torch/optim/optimizer.py(977): zero_grad", "python_function"),
        ],
    )
    def test_zeros_instead_of_none(self, found, name, category):
        program = Program().run("aten::zero_", [8]).run("aten::zero_", [64, 64])
        assert found(program.within(name, -1, category)) == [("gradients_zeroed", "aten::zero_", 2, None)]

    def test_one_call_seen_as_a_frame_and_as_a_range(self, found):
        program = Program().run("aten::_foreach_zero_", [[8], [64]])
        program.within("Optimizer.zero_grad#SGD.zero_grad", -1)
        program.within("torch/optim/optimizer.py(977): zero_grad", -2, "python_function")
        assert found(program) == [("gradients_zeroed", "aten::_foreach_zero_", 1, None)]

    def test_dropped_gradients_start_no_work(self, found):
        program = Program()
        program.now = 5
        assert found(program.within("Optimizer.zero_grad#SGD.zero_grad", 0).run("aten::zero_", [8])) == []


def conv_and_norm(bias: list[int], *between: str, channels: int = 64) -> Program:
    program = Program().run("aten::conv2d", [32, 3, 56, 56], [64, 3, 3, 3], bias, [], [], [], [])
    for name in between:
        program.run(name, [], [], [])
    return program.run("aten::batch_norm", [32, channels, 56, 56], [channels], [channels], [channels], [channels])


class TestBias:
    @pytest.mark.parametrize("between", [(), ("aten::add_",)])
    def test_before_a_batch_norm(self, found, between):
        assert found(conv_and_norm([64], *between)) == [("bias_before_batch_norm", "aten::conv2d", 1, "32×3×56×56")]

    @pytest.mark.parametrize(
        "program", [conv_and_norm([]), conv_and_norm([64], "aten::relu"), conv_and_norm([64], channels=32)]
    )
    def test_not_without_one_or_with_something_in_between(self, found, program):
        assert found(program) == []


class TestAlignment:
    @pytest.mark.parametrize(
        ("name", "shapes", "detail"),
        [
            ("aten::mm", [[4096, 768], [768, 50257]], "4096×768 by 768×50257"),
            ("aten::addmm", [[1001], [128, 2048], [2048, 1001]], "128×2048 by 2048×1001"),
            ("aten::bmm", [[96, 197, 64], [96, 64, 197]], "96×197×64 by 96×64×197"),
        ],
    )
    def test_a_width_that_is_no_multiple_of_eight(self, found, name, shapes, detail):
        assert found(Program().run(name, *shapes, types=[HALF] * 3)) == [("matmul_alignment", name, 1, detail)]

    @pytest.mark.parametrize(
        ("shapes", "types"),
        [
            ([[4096, 768], [768, 50304]], [HALF] * 2),
            ([[4096, 768], [768, 50257]], [FLOAT] * 2),
            ([[1, 768], [768, 768]], [HALF] * 2),
            ([[1003, 768], [768, 768]], [HALF] * 2),
            ([[4096, 768], [768, 1]], [HALF] * 2),
            ([[], []], [HALF] * 2),
        ],
    )
    def test_sizes_that_fit_and_numbers_that_are_no_halves(self, found, shapes, types):
        assert found(Program().run("aten::mm", *shapes, types=types)) == []

    def test_the_backward_pass_is_left_out(self, found):
        program = Program().run("aten::mm", [768, 1003], [1003, 768], types=[HALF] * 2)
        assert found(program.within("autograd::engine::evaluate_function: MmBackward0", -1, "cpu_op")) == []

    def test_shapes_that_cannot_be_read(self, found):
        program = Program().run("aten::mm", "?", [[[1]]], types=[HALF] * 2).run("aten::mm", types=[])
        assert found(program) == []


def test_rows_keep_to_their_threads(found):
    """The move is on another thread than the fill before it."""
    program = Program().run("aten::zeros", [], inside=(("aten::zero_", [64]),), kernels=0)
    move(program, [64])
    for event in program.events[-3:]:
        if event.get("cat") != "gpu_memcpy":
            event["tid"] = AUTOGRAD
    assert found(program) == []


def test_shapes_are_counted(tmp_path):
    catalog = Catalog(ta.load(Program().run("aten::mul", [3], [3]).write(tmp_path / "a.json")))
    assert catalog.table("operator_shapes").to_pylist() == [{"rank": 0, "count": 1}]
    bare = KinetoTrace().op(0, 10).range("aten::mul", 0, 5, category="cpu_op")
    reason = Catalog(ta.load(bare.write(tmp_path / "b.json"))).unavailable("operator_shapes")
    assert reason is not None and "record_shapes=True" in reason
