"""Read the inputs of ccache's keys, which it writes down for each compile under `CCACHE_DEBUG=1`.

https://ccache.dev/manual/4.7.5.html#_cache_debugging; ccache changes nothing else in that mode.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted

_INPUT = re.compile(r"^(?P<object>.+)\.(?P<time>\d{8}_\d{6}_\d{6})\.ccache-input-text$")
_INPUT_PLAIN = re.compile(r"^(?P<object>.+)\.(?P<time>)ccache-input-text$")  # before 4.4
_MODE = re.compile(r"^=== (.+) ===$")
_KEYS = "### "
_RESULT = re.compile(r"\] Result: (\w+)$", re.MULTILINE)
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")


@dataclass(frozen=True)
class Compile:
    """One compile, as ccache saw it.

    Attributes:
        object: absolute path of the object file.
        hit: whether the cache had it; None if it does not say (it was not cacheable).
        inputs: section (`COMMON`), name (`cwd`), value; in the order in which they were hashed.
    """

    object: Path
    hit: bool | None
    inputs: tuple[tuple[str, str, str], ...]

    def values(self, name: str) -> list[str]:
        """Return all values of one name, from the first section that has it."""
        section = next((where for where, key, _ in self.inputs if key == name), "")
        return [value for where, key, value in self.inputs if key == name and where == section]


def read(folder: Path) -> tuple[Compile, ...]:
    """Return the last compile of each object in a folder that was `CCACHE_DEBUGDIR`."""
    newest: dict[str, tuple[str, Path]] = {}
    for path in _files(folder):
        match = _INPUT.match(str(path)) or _INPUT_PLAIN.match(str(path))
        if match and match["time"] >= newest.get(match["object"], ("", path))[0]:
            newest[match["object"]] = (match["time"], path)
    return tuple(
        Compile(
            Path("/") / Path(name).relative_to(folder),
            _hit(path),
            parse(untrusted.read_bytes(path).decode("utf-8", "replace")),
        )
        for name, (_, path) in sorted(newest.items())
    )


def parse(text: str) -> tuple[tuple[str, str, str], ...]:
    """Return the inputs in one `ccache-input-text`."""
    inputs: list[tuple[str, str, str]] = []
    mode, name, lines = "", "", list[str]()
    for line in [*text.splitlines(), "=== end ==="]:
        match = _MODE.match(line)
        if match or line.startswith(_KEYS):
            if name:
                inputs.append((mode, name, "\n".join(lines)))
            name, lines = ("", []) if match else (line.removeprefix(_KEYS), [])
            mode = match[1] if match else mode
        elif name:
            lines.append(line)
    return tuple(inputs)


def _files(folder: Path) -> Iterator[Path]:
    for root, _, names in os.walk(folder):
        yield from (Path(root) / name for name in names if name.endswith("ccache-input-text"))


def _hit(path: Path) -> bool | None:
    log = path.with_name(path.name.replace("ccache-input-text", "ccache-log"))
    results = set(_RESULT.findall(untrusted.text_if_any(log)))
    if results.intersection(_HITS):
        return True
    return False if "cache_miss" in results else None
