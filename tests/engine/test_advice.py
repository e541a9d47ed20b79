"""Advice fits the program: whom an entry speaks to, and that no rule speaks Python to a program without Python, or CUDA to AMD."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

import pytest

from traceanalyzer.engine.advice import fitting, with_recorded
from traceanalyzer.engine.rules.library import load_rules
from traceanalyzer.engine.rules.rule import Rule

RULES = load_rules()
OF_PYTHON = {rule.id for rule in RULES if rule.id.startswith("OPR")} | {"LCH002", "HST004"}
OF_PYTHON |= {rule.id for rule in RULES if rule.source.startswith(("snapshot_", "deepspeed_"))}
"""Rules that only operators of PyTorch, its memory snapshots, DeepSpeed, or Python itself, can make fire."""
PYTHON = re.compile(
    r"\bPython\b|NumPy|DataLoader|\bgc\.|torch|\.item\(\)|\.cpu\(\)|pip install|\bjax\b|\bJAX\b|\bjnp\b|model\(|\.py\b|DDP|FSDP|PyTorch"
)
CUDA = re.compile(
    r"\bcuda[A-Z]\w*|CUDA|\bnsys\b|\bncu\b|\bNCCL\b(?!_)|nvidia-smi|[cC][uU](?:BLAS|DNN|blas)|NVLink|\bNVTX\b|tensor cores"
)
OF_NSYS = {"TRC008", "TRC009", "HST005"}
"""What only exports of Nsight Systems have, which records no GPU of AMD."""
NATIVE = {
    "C++": {"cpp", "nvidia"},
    "C++ with MPI": {"cpp", "mpi", "nvidia"},
    "Kokkos": {"kokkos", "cpp", "nvidia"},
    "Julia": {"julia", "nvidia"},
    "Fortran": {"fortran", "nvidia"},
    "OpenACC": {"fortran", "openacc", "nvidia"},
    "OpenMP": {"openmp", "nvidia"},
    "TensorRT": {"tensorrt", "nvidia"},
    "unknown": set(),
    "HIP": {"cpp", "amd"},
}


def test_an_entry_speaks_to_the_narrowest_audience() -> None:
    entry = {"pytorch": "a", "julia": "b", "openacc": "c", "cuda": "d", "any": "e"}
    assert fitting([entry], {"python", "pytorch"}) == [{"pytorch": "a"}]
    assert fitting([entry], {"julia"}) == [{"julia": "b"}]
    assert fitting([entry], {"fortran", "openacc"}) == [{"openacc": "c"}]
    assert fitting([entry], {"fortran"}) == [{"cuda": "d"}]
    assert fitting([{"pytorch": "a"}, {"any": "e"}], {"fortran"}) == [{"any": "e"}]


def test_a_program_of_two_frameworks_hears_both() -> None:
    assert fitting([{"pytorch": "a", "jax": "b", "cuda": "c"}], {"pytorch", "jax"}) == [{"pytorch": "a", "jax": "b"}]


def test_a_rule_of_one_framework_speaks_rather_than_nothing() -> None:
    assert fitting([{"jax": "a"}], {"cpp"}) == [{"jax": "a"}]


def test_cuda_is_called_hip_on_amd() -> None:
    advice = fitting([{"cuda": "cudaHostAlloc, cudaMemcpyAsync, CUDA graphs, NCCL; keep NCCL_DEBUG"}], {"amd"})
    assert advice == [{"hip": "hipHostMalloc, hipMemcpyAsync, HIP graphs, RCCL; keep NCCL_DEBUG"}]
    assert fitting([{"pytorch": 'torch.cuda.graph, "cuda"'}], {"pytorch", "amd"}) == [
        {"pytorch": 'torch.cuda.graph, "cuda"'}
    ]


def test_what_was_recorded_is_recorded_again() -> None:
    said = with_recorded("nsys profile --trace=cuda,nvtx --sample=none", {"mpi", "cuda", "osrt", "samples"})
    assert said == "nsys profile --trace=cuda,nvtx,osrt,mpi --sample=none"


def test_a_comma_behind_what_is_traced_is_of_the_sentence() -> None:
    said = with_recorded("Record its work: nsys profile --trace=cuda,nvtx, and end it late.", {"osrt"})
    assert said == "Record its work: nsys profile --trace=cuda,nvtx,osrt, and end it late."


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.id not in OF_PYTHON], ids=lambda rule: rule.id)
def test_no_rule_speaks_python_where_there_is_none(rule: Rule, kind: str) -> None:
    traits = NATIVE[kind]
    said = [*words(rule), *advice_for(rule, traits)]
    assert not [text for text in said if PYTHON.search(text)]
    if "amd" in traits and rule.id not in OF_NSYS:
        assert not [text for text in advice_for(rule, traits) if CUDA.search(text)]


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.id not in OF_NSYS], ids=lambda rule: rule.id)
def test_pytorch_on_amd_is_told_no_tool_of_nvidia(rule: Rule) -> None:
    said = advice_for(rule, {"python", "pytorch", "amd"})
    assert not [text for text in said if re.search(r"\bnsys\b|\bncu\b|nvidia-smi|\bNCCL\b(?!_)|NVLink|\bNVTX\b", text)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_is_compiled_is_not_to_be_compiled(rule: Rule) -> None:
    said = advice_for(rule, {"python", "pytorch", "compiled", "nvidia"})
    assert not [text for text in said if "torch.compile(model)" in text]


@pytest.mark.parametrize("kind", NATIVE)
@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.id not in OF_PYTHON], ids=lambda rule: rule.id)
def test_every_rule_says_something_to_everybody(rule: Rule, kind: str) -> None:
    assert advice_for(rule, NATIVE[kind])


def words(rule: Rule) -> list[str]:
    """What the result says of a rule whether or not it fires."""
    reasons = [reason for _, reason in rule.requires.abstain]
    return [rule.title, rule.why, rule.message, *rule.false_positives, *reasons, *rule.figures.values()]


def advice_for(rule: Rule, traits: set[str]) -> list[str]:
    """All advice that a program with these traits may get, whatever the figures."""
    may = [entry for entry in rule.recommend if True in truths(entry.get("when", "True"), traits)]
    kept = [{key: text for key, text in entry.items() if key != "when"} for entry in may]
    return [text for entry in fitting(kept, traits) for text in entry.values()]


def truths(condition: str, traits: set[str]) -> set[bool]:
    """What a condition may come to, with `program` known and nothing else."""
    text = re.sub(r"(\d)(%|ns|us|ms|KiB|MiB|B)\b|(\d)%", r"\1\3", condition)
    return set(_truths(ast.parse(" ".join(text.split()), mode="eval").body, traits))


def _truths(node: ast.expr, traits: set[str]) -> Iterator[bool]:
    if isinstance(node, ast.BoolOp):
        parts = [set(_truths(value, traits)) for value in node.values]
        every = isinstance(node.op, ast.And)
        if all(every in part for part in parts):
            yield every
        if any((not every) in part for part in parts):
            yield not every
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield from (not value for value in _truths(node.operand, traits))
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "program":
        yield node.attr in traits
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield node.value
    else:
        yield from (True, False)
