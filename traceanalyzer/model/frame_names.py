"""What the stack of a CPU sample says: which function ran, and which of the program's own functions called it.

Of `[main, load_mesh, getc, __uflow, __read]` it is "getc", called from "load_mesh". `HIDDEN` and `LIBRARIES` are the tables to
extend: what names nothing, and what a program only calls. Frames of Python are named as traces name them, `train.py(45): step`: where
there are any of the user's, the innermost is the place.
"""

from __future__ import annotations

import re
from functools import cache, lru_cache

from traceanalyzer.names import function_path
from traceanalyzer.places import frame_parts, frame_text, is_user_frame, parsed_frame
from traceanalyzer.records import dataclass

LONGEST = 100


@dataclass(frozen=True)
class Library:
    """Functions that programs call and do not consist of. `work` is what they are at where their own names tell little."""

    functions: str
    work: str | None = None


# Modules without symbols, addresses, what starts a thread, and interpreters, of which every frame of a script is the same.
HIDDEN = (
    r"\[.*\]",
    r"(?:0x)?[0-9a-fA-F]{8,}",
    r"libcudart_static_[0-9a-f]+",
    r"_start|_?_?libc_start_\w+|start_thread|thread_start|(?:__GI_)?_*clone\d?|execute_native_thread_routine|_init|_fini|call_init",
    r"std::(?:thread::|__invoke|_Function_handler|function<|invoke).*",
    r"BaseThreadInitThunk|RtlUserThreadStart|__scrt_common_main_seh",
    r"_?PyEval_\w+|_?PyFunction_\w+|_?PyObject_(?:_?Call|Vectorcall|MakeTpCall|FastCall)\w*|_?PyVectorcall\w*|_PyStack_\w+",
    r"method_vectorcall\w*|cfunction_(?:vectorcall|call)\w*|vectorcall_\w+|slot_(?:tp|nb|sq|mp)_\w+|type_call|object_vacall",
    r"_?PyC(?:Function|Method)\w*|_?PyMethodDef_\w+|call_function|do_call_core|function_code_fastcall|gen_\w+|builtin_(?:exec|eval)\w*",
    r"Py_(?:RunMain|BytesMain|Main)|pymain_\w+|run_mod|run_eval_code_obj|_?PyRun_\w+|pyrun_\w+|pybind11::.*dispatcher.*",
    r"_?i?jl_(?:apply|invoke|f_|fptr|toplevel|interpret|eval)\w*|jfptr_.*|do_call|eval_(?:body|stmt_value|value)|true_main|jl_repl_\w+",
    r"entry_SYSCALL_64\w*|do_syscall_64|x64_sys_call|asm_\w+|ret_from_fork\w*",
)
_COLLECTING = "garbage collection"
LIBRARIES = (
    Library(r"gc_collect_\w+|collect_main|collect_with_callback|_?PyGC_\w+|gc_collect", f"Python's {_COLLECTING}"),
    Library(r"_?i?jl_gc_\w*collect\w*|gc_(?:mark|sweep)\w*", f"Julia's {_COLLECTING}"),
    Library(r"take_gil|_?PyEval_(?:RestoreThread|AcquireThread|AcquireLock)", "the wait for Python's interpreter lock"),
    Library(
        r"opal_progress\w*|ompi_(?:request_(?:wait|default_wait)|sync_wait)\w*|(?:mca_(?:pml|btl|coll)|uc[pt]_worker_progress|uct_)\w*"
        r"|MPID?I?_?(?:CH\d\w*_)?[Pp]rogress\w*|MPIDI\w+_progress\w*|psm2_mq_\w+|fi_cq_read\w*",
        "MPI progress",
    ),
    Library(
        r"gomp_(?:team_)?barrier_wait\w*|do_(?:spin|wait)|__kmp\w*(?:wait|barrier)\w*|kmp_flag\w*",
        "the wait of OpenMP threads for each other",
    ),
    # The C library's own insides, and those of its calls that take time.
    Library(
        r"__(?!\w+_MOD_|device_stub)\w.*|_IO_\w+|_int_\w+|_dl_\w+|_nl_\w+|(?:\w+_)?(?:avx|sse|evex|erms|unaligned)\w*|str_to_mpn|round_and_return"
        r"|sysmalloc\w*|systrim\w*|unlink_chunk\w*|malloc_consolidate|tcache_\w+|arena_get\w*|do_lookup_x|check_match|_?_?errno_location"
    ),
    Library(
        r"v?[fsd]?n?w?(?:printf|scanf)(?:_\w+)?|f(?:get|put)[cs]\w*|get(?:c|s|char|line|delim|w)\w*|put(?:c|s|char)\w*|ungetc"
        r"|f(?:read|write|open|close|seek|tell|flush|sync|datasync)\w*|p?(?:read|write)v?(?:64|_nocancel)*|open(?:at)?(?:64)?|close|lseek(?:64)?"
        r"|strto\w+|ato[fil]l?|w?mem(?:cpy|set|move|cmp|chr|mem)\w*|str(?:n?len|n?cmp|n?cpy|n?cat|r?chr|str|n?dup|tok|spn|case\w+)\w*"
        r"|malloc|calloc|realloc|c?free|posix_memalign|aligned_alloc|m(?:map|unmap|remap|advise|protect)\w*|munmap|s?brk"
        r"|p?poll|p?select|epoll_\w+|ioctl|fcntl\w*|futex\w*|syscall|(?:nano|u)?sleep|clock_\w+|gettimeofday|sched_\w+"
        r"|pthread_\w+|sem_\w+|(?:recv|send)\w*|accept\w*|connect|wait(?:pid|4|id)|f?stat\w*|qsort\w*|bsearch|rand(?:om)?(?:_r)?"
        r"|(?:a?(?:sin|cos|tan)h?|exp2?|log(?:2|10)?|pow|sqrt|fmod|hypot)[fl]?"
    ),
    Library(r"(?:[\w:<>*& ]+ )?std::.*|operator (?:new|delete)\b.*|_Zn[wa]m|_Zd[la]Pv\w*"),
    Library(r"P?MPI_[A-Z]\w*|p?mpi_\w+_"),
    Library(
        r"cu(?:da|dnn|blas(?:Lt)?|fft|sparse|solver|rand|tensor|pti)?[A-Z]\w*|nv(?:rtc|ml|JitLink)\w+|p?nccl[A-Z]\w*|_gfortran_\w+"
        r"|GOMP_\w+|omp_\w+|acc_\w+|hip[A-Z]\w*"
    ),
)
_ENTRY = ("main", "MAIN__", "WinMain", "wmain")
_VERSION = re.compile(r"@.*$|\s*\[clone [^\]]*\]|\.(?:constprop|part|isra|cold|lto_priv)\b.*$")
_INSIDE = re.compile(r"^(?:__GI_+|__isoc\d\d_|__new_|_IO_|_+)")
_VARIANT = re.compile(
    r"(?:_(?:avx\w*|sse\w*|evex\w*|erms|unaligned\w*|ssse\w*)|_l_internal|_internal|_nocancel|_usercnt)+$"
)
_JULIA = re.compile(r"julia_(.+?)_\d+(?:\.\w+)*")
_NAMELESS = ("<lambda>", "<listcomp>", "<dictcomp>", "<setcomp>", "<genexpr>")
_FORTRAN = re.compile(r"__(\w+?)_MOD_(\w+)")


@dataclass(frozen=True)
class Sampled:
    """`ran` is the function, or what it is a part of; `caller` the program's own function around it, and `own` that, or `ran` where
    the program consists of it. None where the stack does not tell. Of scripts `around` is the name of the function that calls `own`.
    """

    ran: str | None
    caller: str | None
    own: str | None
    around: str | None = None


@dataclass(frozen=True)
class _Frame:
    """A function by the name to show; `library`: one that programs call; `work`: what it is a part of."""

    name: str
    hidden: bool = False
    library: bool = False
    work: str | None = None


def read_stack(stack: str) -> Sampled:
    """What a stack says: functions from the outermost to the innermost, joined by ";", modules in brackets."""
    names = stack.split(";")
    if python := [name for name in names if _is_python(name)]:
        return _read_python(python)
    frames = [_frame(name) for name in names]
    told = [frame for frame in frames if not frame.hidden]
    if not told:
        return Sampled(None, None, None)
    at = next((place for place, frame in enumerate(told) if frame.work is not None), None)
    if at is not None:
        caller = _caller(told[:at], None)
        return Sampled(told[at].work, caller, caller)
    at = len(told) - 1
    if not told[at].library:
        ran = told[at].name
        return Sampled(ran, _caller(told[:at], ran), ran)
    # What the program called, and not what that is made of.
    while at and told[at - 1].library:
        at -= 1
    caller = _caller(told[:at], None)
    return Sampled(told[at].name, caller, caller)


def _is_python(name: str) -> bool:
    return "): " in name and parsed_frame(name) is not None


def _read_python(frames: list[str]) -> Sampled:
    """The innermost function of the user's own code that has a name, and what it called; without one what Python ran."""
    own = [(found, frame_text(name)) for name in frames if is_user_frame(name) and (found := parsed_frame(name))]
    if not own:
        return Sampled(frame_text(frames[-1]), None, None)
    (file, _, function), mine = own[-1]
    if function.endswith(_NAMELESS):
        # A lambda or a comprehension is a part of the function that it stands in.
        inside = (text for (where, _, name), text in reversed(own) if where == file and not name.endswith(_NAMELESS))
        mine = next(inside, mine)
    ran = frame_text(frames[-1])
    names = (name for (_, _, name), text in reversed(own) if text != mine and not name.endswith(_NAMELESS))
    around = next((name for name in names if name != (frame_parts(mine) or ("", ""))[1]), None)
    return Sampled(mine, None, mine, around) if is_user_frame(frames[-1]) else Sampled(ran, mine, mine, around)


def with_caller(own: str, around: str) -> str:
    """`train.py:17 (merge)` as `train.py:17 (tokenize → merge)`."""
    parts = frame_parts(own)
    return f"{parts[0]} ({around} → {parts[1]})" if parts else own


def _caller(outer: list[_Frame], ran: str | None) -> str | None:
    """The nearest function of the program's own that says something; a program's entry is all of it."""
    names = (f.name for f in reversed(outer) if not f.library and f.work is None and f.name not in (*_ENTRY, ran))
    return next(names, None)


@cache
def _hidden() -> re.Pattern[str]:
    return re.compile("|".join(HIDDEN))


def is_hidden(name: str) -> bool:
    """Whether a function names nothing."""
    return _hidden().fullmatch(name) is not None


@cache
def _known() -> list[tuple[re.Pattern[str], str | None]]:
    return [(re.compile(library.functions), library.work) for library in LIBRARIES]


@lru_cache(maxsize=1 << 16)
def _frame(name: str) -> _Frame:
    text = _VERSION.sub("", name).strip()
    bare = function_path(text) if re.search(r"[<(\s]", text) else text
    for pattern, work in _known():
        if work is not None and pattern.fullmatch(bare):
            return _Frame(text, work=work)
    if not bare or is_hidden(bare) or is_hidden(text):
        return _Frame(text, hidden=True)
    if any(pattern.fullmatch(bare) or pattern.fullmatch(text) for pattern, work in _known() if work is None):
        return _Frame(_VARIANT.sub("", _INSIDE.sub("", bare))[:LONGEST] or text, library=True)
    for form, place in ((_JULIA, 1), (_FORTRAN, 2)):
        if found := form.fullmatch(bare):
            return _Frame(found[place][:LONGEST])
    return _Frame(bare[:LONGEST])
