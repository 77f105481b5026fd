"""Instructions of a disassembly, counted by class."""

from __future__ import annotations

import re
from collections import Counter
from functools import cache

from tritonsmith.core import configs

TOTAL, OTHER = "all", "other"

_MNEMONICS = {
    "sass": re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)", re.MULTILINE),
    # `buffer_load_dword v3, off` is scratch memory: what has no address of its own
    "amd": re.compile(r"^\t([a-z]\w+(?: [\w\[\]:]+, off(?=,))?)", re.MULTILINE),
}


def count(text: str, language: str) -> dict[str, int]:
    """Classes of a disassembly (`sass` or `amd`) to numbers, in the order of configs/; `all` is first."""
    mnemonics = Counter(_MNEMONICS[language].findall(text))
    found: Counter[str] = Counter()
    for mnemonic, number in mnemonics.items():
        found[class_of(mnemonic, language)] += number
    order = {name: place for place, name in enumerate(names(language))}
    kept = sorted(found.items(), key=lambda item: order[item[0]])
    return {TOTAL: mnemonics.total(), **dict(kept)}


@cache
def class_of(mnemonic: str, language: str) -> str:
    """`global load 128` for `LDG.E.128`; `other` for what is in no class."""
    for name, pattern, wide in _classes(language):
        if pattern.fullmatch(mnemonic):
            return f"{name} {_width(mnemonic, language)}" if wide else name
    return OTHER


@cache
def names(language: str) -> tuple[str, ...]:
    """Every class that there is, those with a width once for each."""
    widths = sorted({bits for _, bits in configs.load("kernel-resources")["widths"][language]})
    found: list[str] = []
    for name, _, wide in _classes(language):
        found += [f"{name} {bits}" for bits in widths] if wide else [name]
    return (*found, OTHER)


def _width(mnemonic: str, language: str) -> int:
    widths = configs.load("kernel-resources")["widths"][language]
    return next(int(bits) for pattern, bits in widths if re.search(pattern, mnemonic))


@cache
def _classes(language: str) -> tuple[tuple[str, re.Pattern[str], bool], ...]:
    rows = configs.load("kernel-resources")[language]
    return tuple((row["class"], re.compile(row["names"]), row.get("width", False)) for row in rows)
