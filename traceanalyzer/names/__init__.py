"""Names: fit to print, and those of kernels as a person reads them, with the function's own name in them.

The full name stays at hand, for searching.
"""

from __future__ import annotations

import re
from functools import lru_cache

from traceanalyzer.names.functors import lambda_of, launched_functor, split, without_wrappers

LONGEST = 90
LONGEST_BRIEF = 50
"""Leaves room in one line for a range and an operation beside each other."""
_LAMBDA = re.compile(r"\([^()]*\)(?:::(?:operator ?\(\)\(\) const::)?[{\[]lambda\([^()]*\)[^}\]]*[}\]])+")
# Every word ends in a space or the bracket: with two ways to split a word, a name without the bracket would take forever.
_CAST = re.compile(r"\([a-zA-Z_][\w:]*(?: [a-zA-Z_][\w:]*)* ?\)(?=-?\d)")
_NAMESPACES = re.compile(r"(?:\b[a-zA-Z_]\w*::)+(?=[a-zA-Z_~])")
_POINTERS = re.compile(r", array<char ?\*, \d+(?:ul)?>")
_ANONYMOUS = re.compile(r"\(anonymous namespace\)::|<unnamed>::")
_SPACES = re.compile(r" +(?=>)|(?<=[<, ])void (?=\w)")
_PART = re.compile(r"(\d+)")

LONGEST_ALIKE = 160
_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]+\b")
_IDS = re.compile(r"(?i)\b((?:seq|sequence|op_id|id|correlation)\s*[=:]\s*)\d+")
_SUFFIX = re.compile(r"_\d+$")
# Not the digits of a type such as int64 or float8_e4m3.
_NUMBER = re.compile(r"(?<![\w.])(?<!lambda )-?\d+(?:u?l{0,2}|[a-z]?)\b")


@lru_cache(maxsize=4096)
def readable_name(name: str, longest: int = LONGEST) -> str:
    """The name of a C++ kernel without what hides its point, cut to `longest` characters; other names are only cut.

    Return type, argument list, anonymous namespaces, PyTorch's `at::native` and the namespaces of template arguments go:
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int, …)"
    becomes "vectorized_elementwise_kernel<4, FillFunctor<float>>". A launch template of Kokkos, Thrust, CUB, RAJA or alpaka is named
    after the functor that it runs: "md::Force (Kokkos parallel_for)", or the functor alone where both are too long.
    """
    text = " ".join(name.split())
    if found := launched_functor(_ANONYMOUS.sub("", text)):
        functor, what = _plain(found[0]), found[1]
        if len(functor) + len(what) + 3 <= longest:
            return f"{functor} ({what})" if functor else what
        short = functor or what
    else:
        short = _plain(text)
    return short if len(short) <= longest else short[: longest - 1].rstrip() + "…"


def brief_name(name: str | None) -> str:
    """The readable name of what may have none, as a part of a line among others."""
    return readable_name(name or "an operation", LONGEST_BRIEF)


def comparable_name(name: str) -> str:
    """The name by which an operation of one run is known in another: readable, without what changes from build to build or from call
    to call.

    Addresses, sequence numbers and operation ids become `#`, as do the number that a compiler appends to a kernel and the numbers among
    template arguments: "triton_poi_fused_add_7" becomes "triton_poi_fused_add_#".
    """
    text = _IDS.sub(r"\1#", _ADDRESS.sub("#", readable_name(name, LONGEST_ALIKE)))
    if text.startswith("triton_"):
        return _SUFFIX.sub("_#", text)
    head, bracket, arguments = text.partition("<")
    return head + bracket + _NUMBER.sub("#", arguments)


def _plain(text: str) -> str:
    short = _demangled(text) if text.startswith("_Z") else text
    if "::" in short or "<" in short or short.startswith("void "):
        short = _without_arguments(_ANONYMOUS.sub("", short).removeprefix("void "))
        head, bracket, rest = _with_named_lambdas(short).partition("<")
        if head:
            rest = _POINTERS.sub("", _NAMESPACES.sub("", _CAST.sub("", _without_lambdas(rest))))
            short = head.removeprefix("at::native::") + bracket + _SPACES.sub("", rest)
    return short or text


def _with_named_lambdas(text: str) -> str:
    """With "lambda 2 in f" in place of a lambda that is a template argument. PyTorch's are told apart by the function around them, and
    lose theirs."""
    text = without_wrappers(text)
    if "lambda" in text and not re.search(r"\b(?:at|c10)::", text):
        for one in split(text)[1]:
            text = text.replace(one, lambda_of(one) or one, 1)
    return text


def _without_lambdas(text: str) -> str:
    """ "f(T&)::{lambda(int)#1}" becomes "f"; from the inside out, because the arguments of one can hold another."""
    while (shorter := _LAMBDA.sub("", text)) != text:
        text = shorter
    return text


def _without_arguments(name: str) -> str:
    """Without the argument list at the end; "Memcpy HtoD (Pageable -> Device)" has a note there, and keeps it."""
    depth = 0
    for at in range(len(name) - 1, 0, -1) if name.endswith(")") else ():
        depth += {")": 1, "(": -1}.get(name[at], 0)
        if depth == 0:
            return name if name[at - 1].isspace() else name[:at]
    return name


def _demangled(name: str) -> str:
    """The leading parts of a mangled name: "_ZN7cutlass6KernelI…" becomes "cutlass::Kernel<…>"."""
    nested = name.startswith("_ZN")
    parts: list[str] = []
    at = 3 if nested else 2
    while (nested or not parts) and (found := _PART.match(name, at)):
        end = found.end() + int(found[1])
        parts.append(name[found.end() : end])
        at = end
    if not parts or at > len(name):
        return name
    return "::".join(parts) + ("<…>" if name[at : at + 1] == "I" else "")


def function_path(signature: str) -> str:
    """The qualified name in a C++ signature, without return type, template arguments and parameters."""
    text = signature.replace("(anonymous namespace)::", "").replace("{anonymous}::", "").replace("<unnamed>::", "")
    if text.startswith("_Z"):
        return _demangled(text).removesuffix("<…>")
    if not re.search(r"[<(\s]", text):
        return text
    kept: list[str] = []
    angle = round_in_angle = 0
    # A template argument may hold parentheses, in which `<` and `>` compare, and a stray `>` (as in `operator->`) must not
    # unbalance the count.
    for piece in re.split(r"([<>()])", text):
        if angle and piece in ("(", ")"):
            round_in_angle = max(round_in_angle + (1 if piece == "(" else -1), 0)
        elif piece == "<" and not round_in_angle:
            angle += 1
        elif piece == ">" and not round_in_angle:
            angle = max(angle - 1, 0)
        elif angle == 0:
            if piece == "(":
                break
            kept.append(piece)
    words = "".join(kept).split()
    return words[-1] if words else text


def capitalized(words: str) -> str:
    """Words as the beginning of a sentence."""
    return words[:1].upper() + words[1:]
