"""Look up environment variables that Triton reads: those of each version, and the meaning of their values.

The data is `configs/triton-variables.toml`; `tests/real` derives it from upstream's commits again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.core.text import version_key
from tritonsmith.facts import checkout

_CONFIG = "triton-variables"
_NEWEST = "99"
_NEAR = 0.85  # ratio of difflib: two letters of a usual name swapped, missing or doubled
_READERS = (
    "setup.py",
    "python/setup.py",
    "python/build_helpers.py",
    "python/triton/knobs.py",
    "include/triton/Tools/Sys/GetEnv.hpp",
    "include/triton/Tools/Sys/GetEnv.h",
)


@dataclass(frozen=True)
class TritonVariable:
    """One row of the table.

    Attributes:
        name: the name of the variable, or a pattern with `*`.
        since: first release line that has it.
        until: last one; empty if it is still there.
        at: its readers: `build`, `run`, `import`, `script`, `test`.
        kind: `flag`, `text`, `number`, `list`, or what a path names: `file`, `makes-folder` ...
        effect: class of its effect: `dump`, `debug`, `override`, `codegen` ...
        what: what it does, in a few words.
        source: the source of the row.
        cache: `invalidates` the key of compiled kernels, is `neutral` to it, or empty.
        by: `c++` for a flag that is read there too.
        inert: first release line that names it and does nothing with it; empty if there is none.
        still: programs that read an inert one nevertheless; empty if there are none.
        unless: another variable beside which an inert one does no harm.
    """

    name: str
    since: str
    at: tuple[str, ...]
    kind: str
    effect: str
    what: str
    source: str
    until: str = ""
    cache: str = ""
    by: str = ""
    inert: str = ""
    still: str = ""
    unless: str = ""

    def exists(self, version: str) -> bool:
        """Return whether a release has it; it may be inert there."""
        return covers(version, self.since, self.until)

    def is_inert(self, version: str) -> bool:
        """Return whether a release names it and does nothing with it."""
        return bool(self.inert) and covers(version, self.inert, self.until)

    @property
    def span(self) -> str:
        """The releases in words: `since 3.2`, `3.0 to 3.4`, `in 3.6`."""
        if not self.until:
            return f"since {self.since}"
        return f"in {self.since}" if self.since == self.until else f"{self.since} to {self.until}"


@dataclass(frozen=True)
class Empty:
    """The effect of an empty variable.

    Attributes:
        does: in words.
        good: that is what one may want.
    """

    does: str
    good: bool = False


@cache
def table() -> Mapping[str, TritonVariable]:
    """Return every variable that some Triton reads, by its name."""
    rows: dict[str, dict[str, Any]] = configs.load(_CONFIG)["variable"]
    return {name: configs.as_dataclass(TritonVariable, {"name": name, **row}) for name, row in rows.items()}


def find(name: str) -> TritonVariable | None:
    """Return the row of a variable; None if no Triton reads it."""
    rows = table()
    # A name of its own goes before a pattern that covers it.
    patterns = (row for key, row in rows.items() if "*" in key and fnmatchcase(name, key))
    return rows.get(name) or next(patterns, None)


def prefixes() -> tuple[str, ...]:
    """Return the prefixes of most of the names of Triton's variables."""
    return tuple(configs.load(_CONFIG)["prefixes"])


def about_triton(environ: Mapping[str, str]) -> tuple[str, ...]:
    """Return the set names that mean Triton, by prefix, by the table, or by a misspelled prefix."""
    ours = (name for name in environ if name.startswith(prefixes()) or find(name) or _slipped(name))
    return tuple(sorted(ours))


def _slipped(name: str) -> bool:
    """Return whether a name such as `TIRTON_HOME` is near a prefix, and as a whole near a known name."""
    head = name.partition("_")[0]
    near = any(
        head != known
        # TIKTOKEN_CACHE_DIR is not meant for Triton.
        and abs(len(head) - len(known)) <= 1
        and SequenceMatcher(None, head, known).ratio() >= 2 / 3
        for known in (prefix.rstrip("_") for prefix in prefixes())
    )
    return near and nearest(name) is not None


def foreign(name: str) -> str:
    """Return the owner of a variable that only begins like one of Triton's; empty otherwise."""
    owners: dict[str, str] = configs.load(_CONFIG)["foreign"]
    return next((owner for pattern, owner in owners.items() if fnmatchcase(name, pattern)), "")


def nearest(name: str) -> str | None:
    """Return the known name that was probably meant; None if none is near."""
    known = [key for key in table() if "*" not in key]
    words = "_".join(sorted(name.split("_")))
    # Words in another order (`TRITON_IR_ENABLE_DUMP`) are far apart for difflib.
    shuffled = [key for key in known if "_".join(sorted(key.split("_"))) == words]
    return next(iter(shuffled or get_close_matches(name, known, n=1, cutoff=_NEAR)), None)


def read_in(root: Path, names: Iterable[str]) -> frozenset[str]:
    """Return the names that the usual files of a checkout mention: its version may lag behind them."""
    # By the text and not by the version: main carries the number of the last release for months.
    files = [root / name for name in _READERS]
    text = "\n".join(untrusted.read_text(path) for path in files if path.is_file())
    words = set(re.findall(r"\w+", text))
    return frozenset(name for name in names if name in words)


def is_true(variable: TritonVariable, value: str, version: str) -> bool:
    """Return whether every reader of a flag takes a value for true."""
    return all(value.lower() in accepted for accepted in _accepted(variable, version))


def is_plain(variable: TritonVariable, value: str, version: str) -> bool:
    """Return whether a flag's value is plainly on for all its readers, or plainly off."""
    # `0x1` or `2` is on for some readers and off for others.
    off: list[str] = configs.load(_CONFIG)["truth"]["false"]
    return value.lower() in off or is_true(variable, value, version)


def true_values(variable: TritonVariable, version: str) -> tuple[str, ...]:
    """Return the values that every reader of a flag takes for true."""
    first, *others = _accepted(variable, version)
    return tuple(value for value in first if all(value in accepted for accepted in others))


def _accepted(variable: TritonVariable, version: str) -> list[list[str]]:
    """Return one list of accepted values for each kind of reader."""
    truth = configs.load(_CONFIG)["truth"]
    readers = []
    if {"build", "script"} & set(variable.at):
        readers.append("setup")
    if {"run", "import", "test"} & set(variable.at):
        readers.append("python" if covers(version, truth["knobs-since"]) else "one")
    if variable.by:
        # Where C++ and Python both read a flag, C++ takes fewer spellings of true:
        # only what both take is on.
        readers[-1:] = [variable.by]
    return [truth[reader] for reader in readers]


def empty(name: str, version: str) -> Empty | None:
    """Return the effect of setting a variable to nothing in a release; None if it equals unset."""
    for row in configs.load(_CONFIG)["empty"]:
        if name in row["names"] and covers(version, row.get("since", "0"), row.get("until", "")):
            return configs.as_dataclass(Empty, row)
    return None


def left_on() -> Mapping[str, str]:
    """Return variables that are easily forgotten, with their cost."""
    rows: dict[str, str] = configs.load(_CONFIG)["left-on"]
    return rows


def instead(name: str) -> str:
    """Return the replacement of a variable that a release lacks or ignores; empty if there is none."""
    rows: dict[str, str] = configs.load(_CONFIG)["instead"]
    return rows.get(name, "")


def needs() -> Mapping[str, str]:
    """Return variables that do nothing unless another one is on, with that one."""
    rows: dict[str, str] = configs.load(_CONFIG)["needs"]
    return rows


def sticky(version: str) -> Mapping[str, str]:
    """Return variables that a release's CMake cache keeps once set, with the value that counts as not set."""
    rows: dict[str, dict[str, str]] = configs.load(_CONFIG)["sticky"]
    exists = {name: row for name, row in rows.items() if name in table() and table()[name].exists(version)}
    return {name: row["default"] for name, row in exists.items() if covers(version, row["since"])}


def covers(version: str, since: str, until: str = "") -> bool:
    """Return whether a version, or the newest if it is empty, lies in a range of release lines."""
    number = version_key(version or checkout.triton_releases()[-1].version)[:2]
    return version_key(since) <= number <= version_key(until or _NEWEST)
