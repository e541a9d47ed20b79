"""What a launch template runs: the functor or lambda inside the names of kernels of Kokkos, Thrust, CUB, RAJA, alpaka and SYCL.

Such a library has a handful of kernels for everything. Their own names say how they were launched, and only a template argument, deep
inside, what is computed.
"""

from __future__ import annotations

import re

_SEEN = re.compile(r"\bKokkos::|\bthrust::|\bcub::|\bRAJA::|\balpaka::|^typeinfo name for |^_ZTS")
# Namespaces that a release adds, so that two of them can live in one program.
_VERSIONS = re.compile(r"\b(?:CUB|THRUST)_\w*?NS::|\b_V\w*?\d::|\b__\d+::")
_BRACKETS = re.compile(r"[<>(){}\[\],]")
_KOKKOS = re.compile(r"\bKokkos::(?:Experimental::)?Impl::\w*[pP]arallel_?[lL]aunch\w*$")
_KOKKOS_DRIVER = re.compile(r"\bKokkos::Impl::Parallel(For|Reduce|Scan)\w*$")
_KOKKOS_POLICY = re.compile(r"\bKokkos::\w*Policy$")
_THRUST = re.compile(r"^(?:thrust|cub)::(?:\w+::)*\w*[kK]ernel\w*$")
_ALGORITHM = re.compile(r"\bcuda_cub::__(?!parallel_for\b|detail\b)([a-z]\w*?)::")
_FOR_EACH = re.compile(r"\b(for_each)(?:_f\b|::)")
_RAJA = re.compile(r"^RAJA::(?:\w+::)*(?:(forall)|(launch)|\w*Kernel)\w*$")
_ALPAKA = re.compile(r"^alpaka::(?:\w+::)*\w*[kK]ernel\w*$")
_LIBRARY = re.compile(r"^(?:const )?(?:thrust|cub|cuda|std|RAJA|camp|Kokkos|alpaka|sycl|hip|rocprim|__gnu_cxx)::")
_WORKS = re.compile(
    r"Agent$|_f$|::functor$|wrapped_function$|[wW]rapper\w*$|negate$|not_fn\w*$|transform_\w*iterator\w*$"
)
"""Types of Thrust and CUB that hold the functor; others hold data: iterators, tuples, policies."""
_OPERATION = re.compile(
    r"::(?:plus|minus|multiplies|divides|modulus|negate|maximum|minimum|less|greater|less_equal|greater_equal|equal_to|not_equal_to|"
    r"logical_and|logical_or|bit_and|bit_or|bit_xor|identity|Sum|Max|Min|ArgMax|ArgMin|Equality|Inequality)$"
)
_NUMBER = r"(?:unsigned )?(?:char|short|int|long long|long|float|double|bool|__half|__nv_bfloat16|__int64)"
_ELEMENT = re.compile(rf"\b{_NUMBER}\b")
_NO_FUNCTOR = re.compile(
    rf"^(?:const )?(?:{_NUMBER}|signed char|unsigned(?: __int64)?|void|T\d+|true|false|\W?\d.*|\(.*)$|[*&]$"
)
_LAMBDA = re.compile(r"[{\[]lambda")
_INSTANCES = re.compile(r"\}?#(\d+)\}|\(instance (\d+)\)\]")
_NVCC_LAMBDA = re.compile(r"\b__nv_h?dl_wrapper_t<")
_NVCC_TAG = re.compile(r"^__nv_dl_(?:trailing_return_)?tag$")
_DEEPEST = 12


def launched_functor(name: str) -> tuple[str, str] | None:
    """What runs inside a launch template, and what launched it: ("md::Force/Half", "Kokkos parallel_for").

    None where the name is of no such template, or does not show what runs; the first is empty where only the algorithm is known.
    """
    if not _SEEN.search(name):
        return None
    text = _VERSIONS.sub("", name).removeprefix("void ").removeprefix("::")
    if text.startswith(("typeinfo name for ", "_ZTS")):
        kernel = text.removeprefix("typeinfo name for ")
        return lambda_of(kernel) or kernel.replace("_ZTS", "_Z", 1), "SYCL"
    path, arguments = split(text)
    if arguments and _KOKKOS.search(path):
        return _of_kokkos(arguments[0])
    if arguments and _THRUST.match(path):
        return _of_thrust(path, arguments, text)
    what = _kernel_of(path)
    functor = _functor(arguments, everywhere=True) if what else None
    return (functor, what) if functor and what else None


def split(text: str) -> tuple[str, list[str]]:
    """The text before the first template bracket, and the arguments in it; none where it has none."""
    start = text.find("<")
    if start < 0 or "(" in text[:start]:
        return text, []
    arguments: list[str] = []
    begin, angle, other = start + 1, 0, 0
    for found in _BRACKETS.finditer(text, start):
        sign, at = found[0], found.start()
        if sign in "({[":
            other += 1
        elif sign in ")}]":
            other -= 1
        elif other > 0 or (sign == ">" and text[at - 1] == "-"):
            continue  # within parentheses they may compare
        elif sign == "<":
            angle += 1
        elif sign == ">":
            angle -= 1
            if not angle:
                return text[:start], [one for one in (*arguments, text[begin:at].strip()) if one]
        elif angle == 1:
            arguments.append(text[begin:at].strip())
            begin = at + 1
    return text[:start], arguments  # a name that was cut


def lambda_of(text: str) -> str | None:
    """ "lambda 2 in f" of a lambda as a compiler writes it; of one within another, with both numbers. None of anything else."""
    text = text.strip()
    if _NVCC_LAMBDA.match(text):
        for one in split(text)[1]:
            path, tag = split(one)
            if _NVCC_TAG.match(path) and len(tag) >= 3:
                number = re.search(r"(\d+)u?l*$", tag[-1])
                return f"lambda {number[1] if number else '?'} in {_function(tag[1])}"
        return "lambda"
    found = _LAMBDA.search(text)
    if not found or not _closed(text[: found.start()]):
        return None
    numbers = ".".join(a or b for a, b in _INSTANCES.findall(text, found.start()))
    inside = text[: found.start()].rstrip().removesuffix("::")
    return f"lambda {numbers or '?'}" + (f" in {_function(inside)}" if inside else "")


def without_wrappers(text: str) -> str:
    """The text with each lambda that nvcc wrapped in a type of its own as `lambda_of` writes it."""
    parts, begin = [], 0
    while found := _NVCC_LAMBDA.search(text, begin):
        end = _end(text, found.end() - 1)
        parts += [text[begin : found.start()], lambda_of(text[found.start() : end]) or "lambda"]
        begin = end
    return "".join((*parts, text[begin:]))


def _kernel_of(path: str) -> str | None:
    """What RAJA or alpaka calls the kernel of that name."""
    if found := _RAJA.match(path):
        return f"RAJA {found[1] or found[2] or 'kernel'}"
    return "alpaka" if _ALPAKA.match(path) else None


def _of_kokkos(driver: str) -> tuple[str, str]:
    path, arguments = split(driver)
    kind = _KOKKOS_DRIVER.search(path)
    if not kind or not arguments:
        return _plain(driver), "Kokkos"
    functor, *rest = arguments
    inner, reduced = split(functor)
    if inner.endswith("::CombinedFunctorReducer") and reduced:
        functor = reduced[0]
    policies = (split(one) for one in rest)
    tags = [
        one for path, given in policies if _KOKKOS_POLICY.search(path) for one in given if _is_functor(split(one)[0])
    ]
    return "/".join(map(_plain, (functor, *tags[:1]))), f"Kokkos parallel_{kind[1].lower()}"


def _of_thrust(path: str, arguments: list[str], text: str) -> tuple[str, str]:
    found = _ALGORITHM.search(text) or _FOR_EACH.search(text)
    what = found[1] if found else path.rpartition("::")[2]
    library = "thrust" if found and "cuda_cub::" in text else path.partition("::")[0]
    if functor := _functor(arguments):
        return functor, f"{library} {what}"
    element = _ELEMENT.search(text)
    return "", f"{library}::{what}" + (f"<{element[0]}>" if element else "")


def _functor(arguments: list[str], everywhere: bool = False) -> str | None:
    """The first type of the program's own among the arguments and inside of what holds functors (or of any type of a library), else the
    first operation that a library has ready."""
    ready = None
    level = list(arguments)
    for _ in range(_DEEPEST):
        below: list[str] = []
        for one in level:
            if written := lambda_of(one):
                return written
            path, inside = split(one)
            if _is_functor(path if inside else one):
                return one
            if inside and _OPERATION.search(path):
                ready = ready or one
            elif inside and _LIBRARY.match(path) and (everywhere or _WORKS.search(path)):
                below += inside
        if not below:
            break
        level = below
    return ready


def _is_functor(path: str) -> bool:
    return not _LIBRARY.match(path) and not _NO_FUNCTOR.search(path)


def _plain(functor: str) -> str:
    return lambda_of(functor) or functor


def _function(text: str) -> str:
    """The qualified name of the function in an expression such as `&(void f<int>(T))` or in a signature."""
    text = text.strip().lstrip("&(").strip()
    kept, begin = [], 0
    while (start := text.find("<", begin)) >= 0 and "(" not in text[begin:start]:
        kept.append(text[begin:start])
        begin = _end(text, start)
    kept.append(text[begin:].partition("(")[0])
    return "".join(kept).split()[-1] if "".join(kept).split() else "?"


def _end(text: str, start: int) -> int:
    """Behind the bracket that closes the one at `start`; the end of the text where none does."""
    angle = other = 0
    for found in _BRACKETS.finditer(text, start):
        sign = found[0]
        if sign in "({[":
            other += 1
        elif sign in ")}]":
            other -= 1
        elif other <= 0 and sign in "<>" and not (sign == ">" and text[found.start() - 1] == "-"):
            angle += 1 if sign == "<" else -1
            if not angle:
                return found.end()
    return len(text)


def _closed(text: str) -> bool:
    """Whether every template bracket in it is closed, so that what follows stands outside of them."""
    angle = 0
    for found in re.finditer(r"(?<!-)[<>]", text):
        angle += 1 if found[0] == "<" else -1
    return angle <= 0
