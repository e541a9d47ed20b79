"""What kind of work a kernel does, told from its name: one table to extend, read from the top.

A name tells what its author wrote into it, so every answer may be "unknown". Families are matched on the function's own name; the
arguments of its templates count only where the function is a wrapper (`cutlass::Kernel<…>`, `vectorized_elementwise_kernel<…>`), whose
arguments say what it wraps.
"""

from __future__ import annotations

import re
from functools import lru_cache

from traceanalyzer.names import function_path
from traceanalyzer.records import dataclass

FAMILIES = (
    "matmul",
    "matvec",  # matrix times vector: bound by memory, no work for tensor cores
    "convolution",
    "depthwise",  # depthwise convolution: bound by memory too
    "attention",  # all of it in one kernel
    "normalization",
    "softmax",
    "elementwise",
    "reduction",
    "layout",  # the same tensor in another order: NCHW to NHWC and back, transposes
    "optimizer",
    "copy",  # copies, casts, concatenations, fills
    "indexing",  # gather, scatter, embedding
    "sorting",  # sort, scan, select, unique
    "random",
    "pooling",  # pooling and resampling
    "loss",
    "communication",
    "other",
)


@dataclass(frozen=True)
class Kernel:
    """What a name says. `tensor_cores` and `precision` (of the inputs) are None where it does not, and outside matrix work.

    `strided_copy` writes the elements of a tensor in another order; `log_softmax` and `backward` tell softmax kernels apart.
    """

    family: str
    tensor_cores: bool | None = None
    precision: str | None = None
    compiler_fused: bool = False
    strided_copy: bool = False
    log_softmax: bool = False
    backward: bool = False


# (family, pattern of the function's own name, pattern of the whole name or None). The first row that matches decides.
KERNEL_NAMES: tuple[tuple[str, str, str | None], ...] = (
    # Compilers (PyTorch's, nvFuser, NNC, XLA, TensorRT) name a kernel after all that is in it; the prefix says what its loop is.
    ("attention", r"^triton_tem_\w*(?:attention|sdpa)", None),
    ("convolution", r"^triton_(?:tem_\w*)?conv", None),
    ("matmul", r"^triton_(?:tem_|mm|bmm|addmm|baddbmm|gemm)|^gemm_fusion|^nvfuser_matmul", None),
    ("softmax", r"^triton_(?:red|per)_fused_\w*softmax|^triton_softmax", None),
    ("reduction", r"^triton_(?:red|per|mix)_|^nvfuser_(?:inner|outer|reduction)|^(?:input_|wrapped_)reduce", None),
    ("sorting", r"^triton_spl_", None),
    ("layout", r"^(?:input_|wrapped_)transpose|^nvfuser_transpose", None),
    ("indexing", r"^(?:input_|wrapped_)(?:scatter|gather)", None),
    ("copy", r"^(?:input_|wrapped_)(?:concatenate|slice|copy|broadcast|pad|convert)", None),
    (
        "elementwise",
        r"^triton_(?:poi|for)_|^nvfuser_|CudaCodeGen::|^\w*fusion(?:_\d+)*$|^wrapped_|^fused_\w+_\d{6,}$|^__myl_",
        None,
    ),
    ("reduction", r"^cupy_(?:sum|prod|max|min|mean|arg|cub_)", None),
    ("elementwise", r"^cupy_(?!copy|take|scatter|scan)", None),
    # Names that contain the words of other families.
    (
        "copy",
        r"reshape_and_cache|concat_and_cache|copy_blocks|kv_?cache_?(?:copy|update|append|write)|append_?paged_?kv",
        None,
    ),
    ("elementwise", r"rotary|rope_", None),
    ("loss", r"nll_loss|NLLCriterion|cross_?entropy|ctc_loss|focal_loss", None),
    (
        "indexing",
        r"embedding|fbgemm_gpu::|indexing_backward|krn_partial|compute_grad_weight|sum_and_scatter|num_of_partial_seg",
        None,
    ),
    # Wrappers, which are what their arguments say.
    ("attention", r"cutlass\w*::(?:Kernel2?|device_kernel)$", r"flash|fmha|attention"),
    (
        "reduction",
        r"cutlass\w*::(?:Kernel2?|device_kernel)$",
        r"^[^<]*<[\w:]*reduction::|_ZN\w*?Kernel\w{0,4}9reduction",
    ),
    ("convolution", r"cutlass\w*::(?:Kernel2?|device_kernel)$", r"conv::|conv\dd|ImplicitGemm|fprop|[dw]grad|4conv"),
    ("matvec", r"cutlass\w*::(?:Kernel2?|device_kernel)$", r"gemv"),
    ("matmul", r"cutlass\w*::(?:Kernel2?|device_kernel)$", r"gemm|matmul|syrk|trmm"),
    ("optimizer", r"multi_tensor_apply_kernel", r"FusedOptimizer|Adam|SGD|Lamb|NovoGrad|Adagrad|RMSprop"),
    ("reduction", r"multi_tensor_apply_kernel", r"Norm|MaxOp|reduce"),
    ("copy", r"multi_tensor_apply_kernel", r"Copy<|CopyFunctor|ZeroFunctor|FillFunctor"),
    ("elementwise", r"multi_tensor_apply_kernel", None),
    ("copy", r"elementwise_kernel", r"FillFunctor|(?:direct|float\w*|bfloat16)_copy_kernel_cuda|copy_device_to_device"),
    (
        "random",
        r"distribution_|curand|philox|bernoulli|multinomial|random_from|randperm|dropout(?!_backward|_bwd|_grad)",
        None,
    ),
    ("normalization", r"elementwise_kernel", r"batch_norm_\w+\(|layer_norm_\w+\(|GroupNormKernelImpl"),
    ("indexing", r"(?:index|scatter_gather)_elementwise_kernel", None),
    ("elementwise", r"elementwise_kernel", None),
    (
        "reduction",
        r"_kernel_agent|cuda_cub|cub::",
        r"__reduce::|DeviceReduce(?:Kernel|SingleTile)|DeviceSegmentedReduce",
    ),
    (
        "sorting",
        r"_kernel_agent|cuda_cub|cub::",
        r"sort|scan|select|unique|compact|partition|histogram|merge|ByKey|RunLength",
    ),
    ("elementwise", r"_kernel_agent|cuda_cub|cub::", r"parallel_for|for_each|transform"),
    # Attention before matrix products and softmax, which are parts of it.
    (
        "attention",
        r"flash_?(?:fwd|bwd|attn|attention|fprop|bprop|decod|prefill)|flash::|fmha|sdpa|(?:^|_|:)mha_|attention|attn",
        None,
    ),
    (
        "attention",
        r"BatchPrefill|BatchDecode|SinglePrefill|SingleDecode|VariableLengthMerge|FlashMLA|mla_(?:decode|fwd)",
        None,
    ),
    ("attention", r"compute_dot_do_o|convert_dq_to_16bits", None),
    # Matrix work, after what only prepares it.
    (
        "layout",
        r"nchw_?(?:to|2)_?nhwc|nhwc_?(?:to|2)_?(?:nchw|folded)|ncdhw_?to|ndhwc_?to|n[ch]\w*AddPadding|tensorTransform|TensorPermute",
        None,
    ),
    ("layout", r"transpose(?!d)|ShuffleInTensor|SwapDimension|cutensor\w*permut|permutation", None),
    ("depthwise", r"depthwise|conv2d_c1_k1|conv2d_grouped_direct|causal_conv1d|conv1d_channellast", None),
    (
        "convolution",
        r"conv(?:olve|olution)?(?:\d?d)?(?:_|\b|Fwd|Bwd|Kernel)|(?<![a-z])[fdw]prop|(?<![a-z])[dw]grad|winograd|implicit_?gemm",
        None,
    ),
    (
        "convolution",
        r"(?:^|_)[a-z]?\d*cudnn_|im2col|col2im|cask_cudnn|cask_plugin|kern_precompute_indices|miopen\w*conv|igemm_(?:fwd|bwd|wrw)",
        None,
    ),
    ("convolution", r"^fft[12]d_|flip_filter", None),
    ("reduction", r"split_?k_?reduce|reduce_?split_?k", None),
    ("matvec", r"gemv|(?:^|_|:)dot_?kernel|reduce_1Block_kernel|axpy_kernel|nrm2_kernel|asum_kernel", None),
    (
        "matmul",
        r"gemm|nvjet|matmul|matrix_?mul|(?:^|_|:)(?:b|add|baddb)?mm(?:_|$)|Cijk_|cutlass_\w*tensorop|wgmma|fused_moe_kernel",
        None,
    ),
    ("matmul", r"marlin|machete|(?:^|_|:)(?:awq|gptq)_|trsm|syrk|trmm", None),
    # The rest by the words that people use.
    (
        "normalization",
        r"(?:layer|batch|group|instance|rms)_?norm|(?:^|_|:)(?:bn|ln)_(?:fw|bw)|_norm_(?:fwd|bwd|kernel)",
        None,
    ),
    (
        "normalization",
        r"GammaBeta|RowwiseMoments|ComputeGradInput|ComputeInternalGradients|ComputeFusedParams|norm_[fb]wd",
        None,
    ),
    ("softmax", r"softmax", None),
    ("optimizer", r"adam|(?:^|_|:)sgd|lamb_|adagrad|rmsprop|optimizer", None),
    ("pooling", r"pool(?:ing)?(?:\d|_|\b|[A-Z])|upsample|interpolat|grid_?sampl|resize|roi_align", None),
    ("sorting", r"sort|scan|top_?k|cum(?:sum|prod)|unique|nms_|routing|moe_align|radix|DigitC|KCounts|KthCounts", None),
    ("indexing", r"gather|scatter|index|take_|_lookup|one_hot|nonzero", None),
    ("random", r"random|uniform|normal_kernel|(?:^|_)randn?_", None),
    (
        "copy",
        r"CatArrayBatched|chunk_cat|split_with_sizes|copy|(?<!pre)fill|memcpy|memset|concat|(?<!broad)cast|convert|triu|tril|_pad\d?d?_",
        None,
    ),
    ("reduction", r"reduce|reduction|(?:^|_)(?:sum|mean|amax|amin|argmax|argmin|norm)(?:_|$)|finalize", None),
    (
        "elementwise",
        r"pointwise|elem(?:ent)?wise|(?:re|ge|si|e)lu(?:_|$|[A-Z])|swiglu|geglu|sigmoid|tanh|bias|act_and_mul|quant",
        None,
    ),
    (
        "elementwise",
        r"scalePackedTensor|vector_?add|op_?tensor|masked|(?:^|_|:)(?:add|mul|sub|div|exp|scale|binary|unary|where|clamp)(?:_|$)",
        None,
    ),
)


def _folded(pattern: str) -> re.Pattern[str]:
    """The pattern for names in lower case: the same outcome as ignoring case, in a third of the time.

    Escapes in capitals (`\\D`) would change their meaning, so no pattern has one.
    """
    assert not re.search(r"\\[A-Z]", pattern), pattern
    return re.compile(pattern.lower())


_RULES = tuple((family, _folded(own), _folded(whole) if whole else None) for family, own, whole in KERNEL_NAMES)

# Some patterns take time by the square of the length. No function's own name is as long as this.
_LONGEST_PATH = 2_000

# What a compiler made, out of as many operators as it could.
_COMPILED = re.compile(
    r"^triton_(?:poi|red|per|for|spl|tem|mix|softmax|gemm)|^nvfuser_|CudaCodeGen::|fusion(?:_\d+)*$|^wrapped_|^__myl_|^fused_\w+_\d{6,}$"
)

# Instructions and libraries that name themselves. What runs on the ordinary cores is looked for first: `xmma` and `cutlass` kernels
# come in both kinds and say which.
_ORDINARY = _folded(
    r"ffma|dfma|simt|(?<![a-z])(?:s|c|gc|d|z)gemm|(?:maxwell|pascal|volta|turing)_hgemm|(?<![a-z])scudnn|gemmSN|gemmk1|Cijk_(?!\w*_MI\d)|"
    r"convolve_common_engine_float|wgrad_alg0_engine|dgrad_engine"
)
_TENSOR = _folded(
    r"nvjet|xmma|wgmma|gmma|[hi]mma(?=_|\d)|umma|utcmma|tcgen05|tensor_?op|cutlass_?3x|s16816|h16816|s161616|h161616|s1688|h1688|i16832|i8816|"
    r"i16816|[sh]884|d884|tf32|tfloat32|tensor\d+x\d+x\d+|mainloopsm(?:90|100|120)|sm(?:90|100|120)_\d+x|mma_\d+x|warpgroupsize|xdl|mfma|gtcx|"
    r"_mi\d+x\d+x|fmhaSm|sm100f|dp256b|marlin|machete"
)
# (precision, pattern), read from the top: of the inputs, as far as a name says it.
_PRECISIONS = tuple(
    (precision, _folded(pattern))
    for precision, pattern in (
        ("tf32", r"tf32|tfloat32|nvjet_(?:sm\d+_)?s(?!m\d)"),
        ("fp4", r"e2m1|nvfp4|mxfp4|nvjet_(?:sm\d+_)?o"),
        ("fp8", r"e4m3|e5m2|fp8|float8|nvjet_(?:sm\d+_)?(?:q|r)|_f8"),
        ("int8", r"imma|i8816|i16832|i8i8|igemm_int8|_i8|int8|s8_s8|dp4a"),
        ("fp64", r"dgemm|d884|dfma|f64|double|_DB_|zgemm"),
        ("complex64", r"(?<![a-z])g?cgemm"),
        ("bf16", r"bf16|bfloat16|nvjet_(?:sm\d+_)?t|_BBS|_BB_|_BS_"),
        ("fp16", r"fp16|f16|half|[sh]884|h1688|h16816|hgemm|nvjet_(?:sm\d+_)?h|_HHS|_HH_|_HB_|_HS_"),
        ("tf32", r"tensorop_s1688"),
        ("fp16", r"s16816|s1688|s161616"),
        ("fp32", r"sgemm|scudnn|ffma|f32|float|simt_s|_SB_|fp32"),
    )
)
_MATRIX = ("matmul", "convolution", "attention")
_LOG = _folded(r"log_?softmax|softmax_warp_(?:for|back)ward<(?:[^,<>]+,){4} *(?:true|\(bool\)1)")
# PyTorch copies tensors of one type and order with a vectorized kernel, and casts with another.
_STRIDED_COPY = re.compile(r"^void at::native::elementwise_kernel<.*_nocast<.*direct_copy_kernel_cuda")
_BACKWARD = _folded(r"backward|bwd|grad|bprop")


@lru_cache(maxsize=1 << 18)  # more names than a trace has: several tables ask for all of them in turn
def kernel_of(name: str) -> Kernel:
    """What a compute kernel does, by its demangled name (a mangled one tells less)."""
    path = function_path(name)[:_LONGEST_PATH]
    own_lower, lower = path.lower(), name.lower()
    family = next(
        (family for family, own, whole in _RULES if own.search(own_lower) and (not whole or whole.search(lower))),
        "other",
    )
    compiled = _COMPILED.search(path) is not None
    if family in _MATRIX:
        return Kernel(family, _tensor_cores(lower), _precision(lower), compiled)
    if family == "softmax":
        log, backward = _LOG.search(lower) is not None, _BACKWARD.search(own_lower) is not None
        return Kernel(family, compiler_fused=compiled, log_softmax=log, backward=backward)
    strided = family == "copy" and _STRIDED_COPY.match(name) is not None
    return Kernel(family, compiler_fused=compiled, strided_copy=strided)


def _tensor_cores(lower: str) -> bool | None:
    if _ORDINARY.search(lower):
        return False
    return True if _TENSOR.search(lower) else None


def _precision(lower: str) -> str | None:
    return next((precision for precision, pattern in _PRECISIONS if pattern.search(lower)), None)
