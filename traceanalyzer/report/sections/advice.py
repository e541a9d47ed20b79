"""Advice as words and code: the code in a sentence is told apart, so that it reads as code and can be copied without the sentence.

What is code is told by its form alone: calls, dotted names, settings, commands. What is not recognised stays words, so nothing is ever
lost: the parts of an advice, put together, are its text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

BLOCK = 24
"""Code of so many characters stands on lines of its own where it ends a sentence."""
_NAME = r"[A-Za-z_]\w*"
# A name, with what belongs to it on its left: "with", "for x in", "y =", a decorator's sign or the dot of a method.
_HEAD = re.compile(
    rf"(?<![\w./:-])(?P<lead>(?:(?:with|for {_NAME} in) )?(?:{_NAME}(?:, {_NAME})* = )?)(?P<name>[@.]?{_NAME}(?:(?:\.|::){_NAME})*)"
)
_VALUE = re.compile(
    r'=(?:"[^"]*"|\.\.\.|--[^\s;()"]*\w|[^\s;()"=]*[^\s,.;:()"=])| = (?:True\b|False\b|None\b|\d+\b|"[^"]*")'
)
_TELLING = re.compile(
    r"[a-z0-9]_|_[a-z0-9]|\w\.[A-Za-z_]{2}|::|^@|^(?:cuda|cublas|cudnn|nccl|cu)[A-Z][a-z]|^[A-Z]+_[A-Z0-9_]+$"
)
_SKIP = re.compile(r"https?://\S+")
_OPTION = r"(?:--?[a-z][\w-]*(?:=[^\s;)]*[^\s;,.:)]|(?: [\w.]*[\d,][\w,.]*\w)+)?)"
_COMMAND = re.compile(
    rf"(?:nsys (?:profile|export|stats)|nvidia-smi(?: topo| nvlink)?|pip install|torchrun)(?: {_OPTION}|"
    r' "[^"]+"| [\w/-]+\.\w[\w-]*(?<!\.))*(?: [A-Z]+(?:,[A-Z]+)+)?(?: python [\w.]+\w)?'
    rf"|(?<![\w-]){_OPTION}(?: {_OPTION})*"
)
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_SEAMS = (("; ", "("), (" ", "="))


@dataclass(frozen=True)
class Part:
    """A piece of an advice: words, code within them, or code on lines of its own (`block`)."""

    text: str
    code: bool = False
    block: bool = False


@dataclass(frozen=True)
class Advice:
    """`code` is what the copy button copies, one line a piece; empty where the advice is words only."""

    parts: list[Part]
    code: str


def advice(text: str) -> Advice:
    """The words and the code of one recommendation, in its order."""
    spans = _joined(text, _code(text))
    parts, at = [], 0
    for start, end in spans:
        if at < start:
            parts.append(Part(text[at:start]))
        closes = re.fullmatch(r"(?:\.(?:\s.*)?)?", text[end:], re.S) is not None
        parts.append(Part(text[start:end], True, closes and end - start >= BLOCK and _opens(text[:start])))
        at = end
    if at < len(text):
        parts.append(Part(text[at:]))
    return Advice(
        parts, "\n".join(dict.fromkeys(part.text for part in parts if part.code and _worth_copying(part.text)))
    )


def _opens(before: str) -> bool:
    """Whether what comes next may begin a line: at the beginning, or after a colon."""
    return not before.strip() or before.rstrip().endswith(":")


def _worth_copying(code: str) -> bool:
    return re.search(r"\([^)]|[= @]", code) is not None


def _code(text: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    while at < len(text):
        found = [m for m in (_SKIP.search(text, at), _COMMAND.search(text, at), _HEAD.search(text, at)) if m]
        if not found:
            break
        first = min(found, key=lambda m: (m.start(), -m.end()))
        if first.re is _HEAD:
            end = _extended(text, first.end())
            if end > first.end() or _TELLING.search(first["name"]):
                whole = first["lead"].endswith("= ") or text.startswith(": ", end)
                spans.append((first.start() if whole else first.start("name"), end))
                at = end
            else:
                at = first.start() + len(first["lead"].split(" ")[0]) if first["lead"] else end
        else:
            if first.re is _COMMAND:
                spans.append(first.span())
            at = first.end()
    return spans


def _extended(text: str, at: int) -> int:
    """The end of an expression whose name ends at `at`: its calls, indices, attributes, and the value of a setting."""
    while at < len(text):
        if text[at] in "([":
            end = _closed(text, at)
            if end is None:
                return at
            at = end
        elif more := re.compile(rf"\.{_NAME}").match(text, at):
            at = more.end()
        elif text.startswith("=[", at):
            at += 1
        elif value := _VALUE.match(text, at):
            return value.end()
        else:
            return at
    return at


def _closed(text: str, at: int) -> int | None:
    """The position behind the bracket that closes the one at `at`; None where none does."""
    waiting: list[str] = []
    quote = ""
    for position in range(at, len(text)):
        sign = text[position]
        if quote:
            quote = "" if sign == quote else quote
        elif sign == '"':
            quote = sign
        elif sign in _PAIRS:
            waiting.append(_PAIRS[sign])
        elif waiting and sign == waiting[-1]:
            waiting.pop()
            if not waiting:
                return position + 1
    return None


def _joined(text: str, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Statements in one line are one piece of code: those of a block after its colon, and those that semicolons part."""
    merged: list[tuple[int, int]] = []
    for start, end in spans:
        if merged:
            before, seam = merged[-1], text[merged[-1][1] : start]
            both = [text[before[0] : before[1]], text[start:end]]
            block = seam == ": " and both[0].startswith(("with ", "for "))
            if block or any(seam == between and all(sign in code for code in both) for between, sign in _SEAMS):
                merged[-1] = (before[0], end)
                continue
        merged.append((start, end))
    return merged
