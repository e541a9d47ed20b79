"""What kind of thing a host thread was doing, told by the ranges around it, at any depth, and by its API calls.

`ACTIVITIES` is the table to extend. Where two hold at once, the one listed first has the time: collecting garbage while compiling is
part of compiling.
"""

from __future__ import annotations

import re

from traceanalyzer.records import dataclass

FIRST_USE_NS = 200_000
"""A call that may load code the first time, and takes this long, did so: warm, it takes a few microseconds, under a profiler tens."""

FIRST_OPERATOR_NS, FIRST_OPERATOR = 2_000_000, 20
"""The first call of an operator set something up where it takes at least this long, and so many times as long as the later ones on the
average: ordinary ones vary by a few times."""


@dataclass(frozen=True)
class Activity:
    """Patterns of names, matched from the start to the end without regard to case; None matches nothing.

    `named` are annotations and NVTX ranges, `operators`, `frames` Python frames, `overheads` what the profiler lists as overhead,
    `calls` API calls, `long_calls` those that count from `FIRST_USE_NS` on.
    """

    name: str
    named: str | None = None
    operators: str | None = None
    frames: str | None = None
    overheads: str | None = None
    calls: str | None = None
    long_calls: str | None = None


def _word(*words: str) -> str:
    """Any of the words (patterns) alone or as a part of a name such as `rank0/validation_loop`."""
    return rf"(?:.*[^a-z0-9])?(?:{'|'.join(words)})(?:[^a-z].*)?"


# Names of PyTorch's own phases of compiling, as ranges of its profiler and in its log of compile times.
_PHASES = r"(?:.* \(dynamo_timed\)|.*\bcompile_id=.*|entire_frame_compile|(?:backend|inductor|fx_codegen_and)_compile|_compile\..*)"
_XLA = r"(?:xlacompile.*|backend_compile.*|\w*compiler::.*)"
ACTIVITIES = (
    Activity(
        "compilation",
        # `Torch-Compiled Region` and `Call CompiledFxGraph` are calls of what is compiled already.
        named=rf"(?:{_PHASES}|{_XLA}|{_word('(?:re|jit[ _-]?)?compil(?:e|ing|ation)')})",
        operators=rf"(?:{_PHASES}|{_XLA})",
        frames=(
            r"(?:.*/)?(?:"
            r"torch/_dynamo/(?:convert_frame|symbolic_convert|output_graph|repro/\w+)\.py\(\d+\): .*"
            r"|torch/_inductor/(?:graph|scheduler|async_compile|codegen/[\w/]+)\.py\(\d+\): .*"
            r"|torch/_inductor/compile_fx\.py\(\d+\): \w*compile\w*"
            r"|torch/_inductor/codecache\.py\(\d+\): (?!__call__|_?run).*"
            r"|torch/_inductor/runtime/triton_heuristics\.py\(\d+\): (?:precompile|\w*benchmark\w*|\w*autotune_to\w*|bench)"
            r"|torch/utils/cpp_extension\.py\(\d+\): .*"
            r"|triton/compiler/compiler\.py\(\d+\): (?:compile|make_\w+)"
            r"|triton/runtime/jit\.py\(\d+\): _do_compile"
            r"|triton/runtime/autotuner\.py\(\d+\): (?:_bench|benchmark)"
            r"|jax/_src/(?:compiler|interpreters/pxla)\.py\(\d+\): \w*compile\w*"
            r")"
        ),
        overheads=r".*driver compiler.*",
        calls=r"(?:cu|hip)(?:LinkAdd\w+|LinkComplete)|(?:nv|hip)rtcCompileProgram",
    ),
    Activity(
        "garbage_collection",
        named=r"(?:python[ _.-]?)?gc(?:[ _.-]?(?:collect\w*|pause\w*|gen\w*).*)?|(?:.*[^a-z])?garbage[ _-]?collect.*",
        frames=r"<built-in (?:function|method) collect(?:>| of .*)|(?:.*/)?gc\.py\(\d+\): collect",
    ),
    Activity(
        "first_use",
        named=(
            r".*cudnn_?find.*algorithm.*|(?:.*[^a-z])?lazy[ _-]?(?:init\w*|load\w*)(?:[^a-z].*)?"
            r"|(?:cu|roc|hip)(?:blas|dnn|solver|sparse|fft|rand)\w*?_?(?:Create|create_handle|Init)(?:_v\d+)?|ncclCommInit\w*"
        ),
        overheads=r".*(?:lazy function loading|module loading).*",
        calls=r"(?:cu|cuda|hip)(?:Module|Library)Load\w*",
        long_calls=(
            r"(?:cu|cuda|hip)(?:FuncGet\w+|FuncSet\w+|FuncLoad|Occupancy\w+|ModuleGet\w+|LibraryGet\w+|KernelGet\w+|GetFuncBySymbol"
            r"|StreamCreate\w*|SetDevice|CtxCreate|DevicePrimaryCtxRetain|Init)"
        ),
    ),
    Activity(
        "checkpoint",
        named=(
            _word(
                "checkpoint[ _-]?(?:sav|writ|dump)\\w*",
                "(?:sav|writ|dump)(?:e|ing)?[ _-]?(?:the[ _-]?)?(?:checkpoint|ckpt|model|state)\\w*",
            )
            + r"|torch\.save.*|checkpoint(?:ing)?"
        ),
        frames=(
            r"(?:.*/)?(?:torch/serialization\.py\(\d+\): (?:save|_save|_legacy_save)"
            r"|torch/distributed/checkpoint/[\w/]+\.py\(\d+\): (?:async_)?save\w*"
            r"|safetensors/\w+\.py\(\d+\): save_file|.*: save_(?:checkpoint|ckpt|pretrained))"
        ),
    ),
    Activity(
        "optimizer",
        named=rf"(?!.*zero_grad){_word('optim(?:izer)?', 'opt[ _.-]?step')}",
        operators=r"Optimizer\.step#.*",
        frames=(
            r"(?:.*/)?(?:torch/optim/(?!lr_scheduler|swa_utils)\w+\.py\(\d+\): (?:step|_(?:single|multi)_tensor_\w+|_fused_\w+)"
            r"|(?:apex/optimizers|deepspeed/ops)/[\w/]+\.py\(\d+\): step)"
        ),
    ),
    Activity(
        "evaluation",
        named=rf"(?!autograd::){_word('eval', 'evaluat(?:e|ion)', 'validat(?:e|ion)', 'val')}",
        frames=r".*\.py\(\d+\): (?:evaluate|evaluation\w*|validation\w*|validate_\w+|eval_\w+|run_(?:eval|validation)\w*)",
    ),
)


class Matcher:
    """Which activity a name of one kind (an attribute of `Activity`) stands for: its place in `ACTIVITIES`, or None."""

    def __init__(self, kind: str) -> None:
        patterns = [(f"a{place}", getattr(activity, kind)) for place, activity in enumerate(ACTIVITIES)]
        either = "|".join(f"(?P<{group}>{pattern})" for group, pattern in patterns if pattern is not None)
        self._expression = re.compile(either, re.IGNORECASE | re.DOTALL)

    def __call__(self, name: str) -> int | None:
        found = self._expression.fullmatch(name)
        return None if found is None or found.lastgroup is None else int(found.lastgroup[1:])
