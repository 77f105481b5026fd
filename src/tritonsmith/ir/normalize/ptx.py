"""Normalize PTX: no comments, no debug information, registers named after their first definition.

The number of declared registers is left out: PTX has as many as it has results, and ptxas allocates them. The
version and the target stay. `ptx.tokens` is not used: only registers, labels and strings matter here, and one
pattern for them takes fewer steps than a token per word.
"""

from __future__ import annotations

import re

from tritonsmith.ir.normalize.renaming import MARK, NormalForm, assembly, indented, named

_STRING = r'"(?:[^"\\\n]|\\.)*+"?'
# LLVM's register names; %tid.x, %ctaid.x, %SP and registers of inline assembly keep their names.
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
_LABEL = re.compile(r"(\$L__BB)\w+(?:\.\d+)?:")


def form(text: str) -> NormalForm:
    """Return the normal form of PTX."""
    text = _DROPPED.sub(lambda match: match[1] or " ", text.replace(MARK, " "))
    text = _COUNT.sub(r"\1<>", _SECTION.sub("", text))
    kept = filter(None, (indented(line, by="    ") for line in text.split("\n")))
    return named(assembly(kept, _NAME, _LABEL, _BEGINS), {}, _stem)


def _stem(name: str) -> str:
    """Return the stem of a name: `%rd` of `%rd12`, `$L__BB` of `$L__BB0_3`."""
    return "$L__BB" if name[0] == "$" else name.partition("_")[0].rstrip("0123456789")
