"""What names say about the kind of parallelism that a collective serves.

Pure functions and tables over single names; `parallelism` calls them on the values of a dictionary. A name decides only together with
the kind of collective: an all-to-all under a mixture of experts moves tokens, an all-reduce there adds up what tensor parallel ranks
have.
"""

from __future__ import annotations

import re
from functools import cache

DATA = "data parallel"
SHARDED = "sharded data parallel"
TENSOR = "tensor parallel"
PIPELINE = "pipeline parallel"
EXPERT = "expert parallel"
EMBEDDING = "embedding exchange"
CONTEXT = "context parallel"
SYNC = "synchronization"
OTHER = ""
"""Known to be none of these: no pattern may say otherwise."""

POINT_TO_POINT = frozenset({"send", "receive", "send-receive"})
GATHERS = frozenset({"all-gather", "reduce-scatter"})
REDUCES = frozenset({"all-reduce"})
EXCHANGES = frozenset({"all-to-all"})
HOUSEKEEPING = frozenset({"all-reduce", "reduce", "broadcast", "all-gather", "gather", "scatter"})
"""Kinds that also carry losses, norms, flags and pickled objects."""

# (what a range around the launch is called, kinds of collectives that it then explains, what they serve). The innermost range decides.
# Names that a program's own files can have stand with the part of a library's path that only the library has.
SIGNS: tuple[tuple[re.Pattern[str], frozenset[str], str], ...] = tuple(
    (re.compile(pattern), kinds, label)
    for pattern, kinds, label in (
        # Gradients are accumulated, and a hook sends them off: DistributedDataParallel, or with shards ZeRO.
        (r"AccumulateGrad", REDUCES, DATA),
        (r"AccumulateGrad", frozenset({"reduce-scatter", "reduce"}), SHARDED),
        (r"DistributedDataParallel\.forward", frozenset({"broadcast"}), DATA),
        (r"^FSDP::|FullyShardedDataParallel\.|torch/distributed/fsdp/", GATHERS, SHARDED),
        # With a second dimension of replicas, the shards are all-reduced across it.
        (r"^FSDP::|FullyShardedDataParallel\._", REDUCES, DATA),
        (r"DeepSpeedZero|PartitionedParameter|deepspeed/runtime/zero/", GATHERS | {"reduce"}, SHARDED),
        (r"ZeroRedundancyOptimizer", GATHERS | {"broadcast"}, SHARDED),
        (
            r"(?:Model|Tensor|Sequence)ParallelRegion|(?:Column|Row|Vocab)\w*Parallel|tensor_model_parallel_"
            r"|LinearWithGradAccumulationAndAsync|torch/distributed/tensor/parallel/",
            REDUCES | GATHERS | {"gather"},
            TENSOR,
        ),
        (
            r"torch/distributed/pipelining/|/pipeline_parallel/|deepspeed/runtime/pipe/|\b(?:send|recv)_(?:forward|backward)",
            POINT_TO_POINT,
            PIPELINE,
        ),
        (
            r"MoE|Moe|Expert|(?<![A-Za-z])(?:moe|experts?)(?![a-z])|[Tt]oken_?[Dd]ispatch|[Tt]oken_?[Cc]ombine|deep_?ep\b",
            EXCHANGES | GATHERS,
            EXPERT,
        ),
        (r"[Ee]mbedding|All2All_|KJT|kjt|sparse_data_dist|[Dd]lrm|DLRM|## alltoall_", EXCHANGES, EMBEDDING),
        (r"PooledEmbedding|(?:ReduceScatter|AllGather)\w*_(?:Req|Wait)\b", GATHERS, EMBEDDING),
        (
            r"[Rr]ing_?(?:[Ff]lash_?)?[Aa]tt|context_parallel|ContextParallel|FuncWithCP|SeqAllToAll|[Uu]lysses",
            POINT_TO_POINT | EXCHANGES | GATHERS,
            CONTEXT,
        ),
        (r"(?:gather|broadcast|scatter)_object|monitored_barrier|clip_grad_norm|get_total_norm", HOUSEKEEPING, SYNC),
        (r"SyncBatchNorm", HOUSEKEEPING, OTHER),
    )
)

# Kernels that are written for one purpose: the small all-reduces between the layers of a served model, and the exchange of tokens.
_KERNELS = (
    (
        re.compile(
            r"cross_device_reduce|all_?reduce_fusion|quick_?(?:all_)?reduce|(?:one|two)_?shot_?all_?reduce"
            r"|multimem_all_?reduce",
            re.IGNORECASE,
        ),
        TENSOR,
    ),
    (re.compile(r"\bdeep_ep\b|\bhybrid_ep\b|\b(?:intra|inter)node(?:_ll)?::"), EXPERT),
)

# Words that name a dimension of a device mesh or a process group.
_WORDS = {
    DATA: {"dp", "ddp", "data", "replicate", "replica", "edp"},
    SHARDED: {"fsdp", "efsdp", "shard", "sharded", "zero"},
    TENSOR: {"tp", "tensor", "etp"},
    PIPELINE: {"pp", "pipeline", "pipe"},
    EXPERT: {"ep", "expert", "experts", "moe"},
    CONTEXT: {"cp", "context"},
}
# What each of them sends. Any other kind in such a group is bookkeeping of some sort.
_KINDS = {
    TENSOR: REDUCES | GATHERS | {"gather", "broadcast"},
    PIPELINE: POINT_TO_POINT,
    EXPERT: EXCHANGES | GATHERS,
    CONTEXT: POINT_TO_POINT | EXCHANGES | GATHERS,
}


@cache
def of_description(description: str, kind: str) -> str | None:
    """What a collective of this kind serves in a process group described as, say, mesh_dp_shard or TENSOR_MODEL_PARALLEL_GROUP.

    None where the description names no dimension (default_pg) or several that are used differently.
    """
    words = set(re.findall(r"[a-z]+", description.lower()))
    named = {label for label, known in _WORDS.items() if words & known}
    if named & {DATA, SHARDED} and not named & {TENSOR, PIPELINE}:
        # The ranks of a context or of an expert group hold their own parts of the batch as well.
        if kind in GATHERS:
            return SHARDED
        return DATA if kind in REDUCES | {"broadcast"} and SHARDED not in named else None
    if TENSOR in named and "and" not in words:
        named -= {EXPERT}
    label = named.pop() if len(named) == 1 else None
    return label if label and kind in _KINDS.get(label, ()) else None


@cache
def of_kernel(name: str) -> str | None:
    """What a kernel is written for; None for kernels of all-purpose libraries."""
    return next((label for pattern, label in _KERNELS if pattern.search(name)), None)
