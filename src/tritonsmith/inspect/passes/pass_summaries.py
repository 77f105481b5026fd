"""Read one-line descriptions of passes: the `summary` in their tablegen."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import UsageError

_PASS = re.compile(
    r"\bdef\s+\w+\s*:\s*(?:Interface)?Pass<\s*\"([^\"]+)\"[^{;]*\{(.*?)(?=\ndef\s|\Z)", re.DOTALL
)
_SUMMARY = re.compile(r"let\s+summary\s*=\s*((?:\"(?:[^\"\\]|\\.)*\"\s*)+|\[\{.*?\}\])\s*;", re.DOTALL)
_SKIPPED = {".git", "build", "node_modules", "test", "tests", "unittests"}


def read(checkouts: Sequence[Path]) -> dict[str, str]:
    """Return one line on each pass, by its name on a command line, from the tablegen of checkouts."""
    summaries: dict[str, str] = {}
    for checkout in checkouts:
        for folder, folders, files in os.walk(checkout):
            folders[:] = sorted(set(folders) - _SKIPPED)
            for name in files:
                if name.endswith("Passes.td"):
                    try:
                        text = untrusted.read_text(Path(folder) / name)
                    except OSError:
                        continue
                    for argument, body in _PASS.findall(text):
                        if match := _SUMMARY.search(body):
                            summaries.setdefault(argument, _line(match[1]))
    return summaries


def _line(text: str) -> str:
    if text.startswith("[{"):
        return " ".join(text[2:-2].split())
    return " ".join("".join(re.findall(r"\"((?:[^\"\\]|\\.)*)\"", text)).split())


def asked(checkouts: Sequence[str] | None, *, wanted: bool) -> dict[str, str] | None:
    """Return the summaries that `--summary` and `--source` request; None if they request none.

    Raises:
        UsageError: one flag without the other, or a folder that does not exist.
    """
    if not checkouts:
        if wanted:
            hints = ["give Triton's or LLVM's checkout: --source PATH"]
            raise UsageError("--summary reads the summaries from a checkout", hints=hints)
        return None
    folders = [Path(text).expanduser() for text in checkouts]
    for folder in folders:
        if not folder.is_dir():
            raise UsageError("no such checkout", where=folder)
    return read(folders)
