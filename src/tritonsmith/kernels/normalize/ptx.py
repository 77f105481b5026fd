"""PTX in normal form: no comments, no debug information, registers named after what writes them first.

How many registers are declared is left out: PTX has as many as it has results, and ptxas allocates. The
version and the target stay. `ptx.tokens` is not used: here registers, labels and strings matter only, and
one pattern for them takes fewer steps than a token for each word.
"""

from __future__ import annotations

import re

from tritonsmith.kernels.normalize.renaming import MARK, Define, IrLine, NormalForm, named, spaced, split

_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
# Registers as LLVM calls them; %tid.x, %ctaid.x, %SP and those of inline assembly keep their names.
_NAME = re.compile(
    rf"({_STRING}|%(?:p|rs|rd|rq|r|fd|f|hh|h|b)(?:\d++|_[0-9a-f]{{4}}(?:\.\d++)?+)(?![\w$])"
    r"|\$L__BB(?:\d++_\d++|_[0-9a-f]{4}(?:\.\d++)?+)(?![\w$]))"
)
_DROPPED = re.compile(
    rf"//.*|/\*(?:[^*]|\*(?!/))*+(?:\*/)?|^\s*(?:\.loc\b.*|\.file\b.*|\$L__(?:tmp|func_begin|func_end)\d+:)|({_STRING})",
    re.MULTILINE,
)
_SECTION = re.compile(r"^\s*\.section[ \t]+\.debug\w*\s*\{[^}]*(?:\}|\Z)", re.MULTILINE)
_COUNT = re.compile(r"(\.reg\s+\.\w+\s+%\w+)<\d+>")
_BEGINS = re.compile(r"(?:\.(?:visible|weak|extern)\s+)*\.(?:entry|func)\b")
_LABEL = re.compile(r"\$L__BB\w+(?:\.\d+)?:")


def form(text: str) -> NormalForm:
    """The normal form of PTX."""
    text = _DROPPED.sub(lambda found: found[1] or " ", text.replace(MARK, " "))
    text = _COUNT.sub(r"\1<>", _SECTION.sub("", text))
    kept = [line for line in map(_spaced, text.split("\n")) if line]
    return named(map(_line, kept), {}, _stem)


def _spaced(text: str) -> str:
    """One blank between words, and four before what is indented."""
    words = spaced(text)
    return f"    {words}" if words and text[0].isspace() else words


def _line(text: str) -> IrLine:
    between, names = split(_NAME, text)
    begins = text[0] == "." and _BEGINS.match(text) is not None
    if not names:
        return IrLine(text, begins=begins)
    if _LABEL.match(text):
        return IrLine(MARK.join(between), names, (Define(0, "$L__BB"),), label=True)
    return IrLine(MARK.join(between), names, begins=begins)


def _stem(name: str) -> str:
    """`%rd` of `%rd12`, `$L__BB` of `$L__BB0_3`."""
    return "$L__BB" if name[0] == "$" else name.partition("_")[0].rstrip("0123456789")
