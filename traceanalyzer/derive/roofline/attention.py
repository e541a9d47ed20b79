"""Fused attention: two products of queries, keys and values forward, five backward.

Forward is 2·b·h·pairs·(d_k + d_v), where pairs are those of queries and keys that meet: s_q · s_k, and with a causal mask those that it
leaves, about a half. Backward computes the scores again and has four gradients: 2·b·h·pairs·(3 d_k + 2 d_v), 2.5 times as many
(Dao, "FlashAttention-2", 2023, section 4.1, counts so, causal halved). Softmax, scaling and dropout are not counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from traceanalyzer.derive.roofline.inputs import Inputs, Shape, Work, sizes_of
from traceanalyzer.records import dataclass

Corner = Literal["top", "bottom"]
"""From which corner a causal mask goes where there are more keys than queries, or fewer."""
UNTOLD = "counted as not causal"


@dataclass(frozen=True)
class _Form:
    """Where an operator has what: numbers of its inputs.

    `query` is followed by key and value. `heads` is the dimension of the heads (1: b × h × s × d, 2: b × s × h × d). `lengths` are
    inputs that hold the lengths of sequences of different ones, `window` those of a sliding window.
    """

    query: int
    heads: int
    causal: int
    backward: bool = False
    corner: Corner = "top"
    lengths: tuple[int, ...] = ()
    window: tuple[int, ...] = ()
    is_mask_type: bool = False


ATTENTION: Mapping[str, _Form] = {
    "aten::_scaled_dot_product_flash_attention": _Form(0, 1, 4, corner="bottom"),
    "aten::_scaled_dot_product_efficient_attention": _Form(0, 1, 6),
    "aten::_scaled_dot_product_cudnn_attention": _Form(0, 1, 6),
    "aten::_scaled_dot_product_fused_attention_overrideable": _Form(0, 1, 5),
    "aten::_flash_attention_forward": _Form(0, 2, 8, corner="bottom", lengths=(3, 4), window=(11, 12)),
    "aten::_efficient_attention_forward": _Form(0, 2, 9, lengths=(4, 5), window=(13,), is_mask_type=True),
    "aten::_cudnn_attention_forward": _Form(0, 1, 10, lengths=(4, 5)),
    "aten::_scaled_dot_product_flash_attention_backward": _Form(1, 1, 11, True, "bottom", lengths=(6, 7)),
    "aten::_scaled_dot_product_efficient_attention_backward": _Form(1, 1, 11, True),
    "aten::_scaled_dot_product_cudnn_attention_backward": _Form(1, 1, 14, True, lengths=(9, 10)),
    "aten::_scaled_dot_product_fused_attention_overrideable_backward": _Form(1, 1, 13, True, lengths=(8, 9)),
    "aten::_flash_attention_backward": _Form(1, 2, 11, True, "bottom", lengths=(6, 7), window=(15, 16)),
    "aten::_efficient_attention_backward": _Form(1, 2, 14, True, lengths=(6, 7), window=(18,), is_mask_type=True),
    "aten::_cudnn_attention_backward": _Form(1, 1, 14, True, lengths=(9, 10)),
    "flash_attn::_flash_attn_forward": _Form(0, 2, 5, corner="bottom", window=(6, 7)),
    "flash_attn::_flash_attn_backward": _Form(1, 2, 11, True, "bottom", window=(12, 13)),
}
"""By name of the operator: those of PyTorch's `native_functions.yaml`, and those that flash-attn registers."""


def attention_work(name: str, inputs: Inputs) -> Work | None:
    """None where the shapes do not fit together, or the lengths of sequences lie in a tensor, whose values are not recorded."""
    form = ATTENTION[name]
    query, key, value = (inputs.shape(form.query + at, 4) for at in range(3))
    if not query or not key or not value or any(inputs.shape(at) for at in form.lengths) or _is_cut(form, inputs):
        return None
    sequence = 3 - form.heads
    heads, keys = query[form.heads], key[form.heads]
    if query[3] != key[3] or heads % keys or key[sequence] != value[sequence] or query[0] != key[0]:
        return None
    told, corner = _mask(form, inputs)
    pairs = query[sequence] * key[sequence]
    if told:
        pairs = _pairs(query[sequence], key[sequence], corner)
    deep, wide = query[3], value[3]
    products = 3 * deep + 2 * wide if form.backward else deep + wide
    out = (*query[:3], wide)
    parts: list[tuple[Shape, int]] = [(query, form.query), (key, form.query), (value, form.query), (out, form.query)]
    if form.backward:
        parts = [*parts, (out, form.query), *parts[:3]]
    return Work(
        "attention",
        2 * query[0] * heads * pairs * products,
        inputs.moved(parts),
        inputs.precision(form.query),
        sizes_of(query, key) + (", causal" if told else ""),
        UNTOLD if told is None else "",
    )


def _mask(form: _Form, inputs: Inputs) -> tuple[bool | None, Corner]:
    """Whether a causal mask was told (None: not recorded), and its corner."""
    value = inputs.value(form.causal)
    if not form.is_mask_type:
        return (value if isinstance(value, bool) else None), form.corner
    kind = value if isinstance(value, int) else None
    return (None if kind is None else kind in (1, 2)), "bottom" if kind == 2 else "top"


def _is_cut(form: _Form, inputs: Inputs) -> bool:
    """Whether a sliding window leaves out pairs; -1 is none."""
    sizes = [inputs.value(at) for at in form.window]
    return any(isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in sizes)


def _pairs(queries: int, keys: int, corner: Corner) -> int:
    """Pairs that a causal mask leaves: query i meets keys up to i (from the top), or up to i + keys - queries (from the bottom)."""
    first = keys - queries if corner == "bottom" else 0
    # The number of keys grows by one from query to query, between 0 and all of them.
    skipped = max(-first, 0)
    growing = min(queries, keys - first) - skipped
    start = first + skipped + 1
    whole = queries - skipped - growing
    return growing * (2 * start + growing - 1) // 2 + whole * keys
