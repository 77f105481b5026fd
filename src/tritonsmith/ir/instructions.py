"""Count the instructions of a disassembly by class."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from tritonsmith.core import configs

TOTAL, OTHER = "all", "other"

_MNEMONICS = {
    "sass": re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE),
    # `buffer_load_dword v3, off` is scratch memory: it has no address operand
    "amd": re.compile(r"^\t([a-z]\w+(?: [\w\[\]:]+, off(?=,))?)", re.MULTILINE),
}


def count(text: str, language: str) -> dict[str, int]:
    """Count classes in a disassembly (`sass` or `amd`), in the order of configs/; `all` comes first."""
    mnemonics = Counter(_MNEMONICS[language].findall(text))
    counts: Counter[str] = Counter()
    for mnemonic, number in mnemonics.items():
        counts[class_of(mnemonic, language)] += number
    order = {name: place for place, name in enumerate(names(language))}
    kept = sorted(counts.items(), key=lambda item: order[item[0]])
    return {TOTAL: mnemonics.total(), **dict(kept)}


@cache
def class_of(mnemonic: str, language: str) -> str:
    """Return the class of a mnemonic: `global load 128` for `LDG.E.128`; `other` if it is in none."""
    for name, pattern, wide in _classes(language):
        if pattern.fullmatch(mnemonic):
            return f"{name} {_width(mnemonic, language)}" if wide else name
    return OTHER


@cache
def names(language: str) -> tuple[str, ...]:
    """Return every class, those with a width once per width."""
    widths = sorted({bits for _, bits in configs.load("kernel-resources")["widths"][language]})
    classes: list[str] = []
    for name, _, wide in _classes(language):
        classes += [f"{name} {bits}" for bits in widths] if wide else [name]
    return (*classes, OTHER)


def _width(mnemonic: str, language: str) -> int:
    widths = configs.load("kernel-resources")["widths"][language]
    return next(int(bits) for pattern, bits in widths if re.search(pattern, mnemonic))


@cache
def _classes(language: str) -> tuple[tuple[str, re.Pattern[str], bool], ...]:
    rows = configs.load("kernel-resources")[language]
    return tuple((row["class"], re.compile(row["names"]), row.get("width", False)) for row in rows)
