"""Scripts under triage, run by this Python."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.unit.lab.fake_subject import quiet
from tritonsmith.lab.journal import Journal, Observation
from tritonsmith.lab.triage import verdict
from tritonsmith.lab.triage.program import CommandSubject, parse_check
from tritonsmith.lab.triage.verdict import TriageResult

COMPILED = (  # as Triton leaves it
    "import os, pathlib\nfolder = pathlib.Path(os.environ['TRITON_CACHE_DIR'], 'key')\n"
    "folder.mkdir(parents=True, exist_ok=True)\n(folder / 'k.ptx').touch()\n"
)


def subject(folder: Path, text: str, check: str = "", timeout: int = 0) -> CommandSubject:
    """A script; of a check, by a name of Python that has to be looked up."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    argv = ("python" if check else sys.executable, "script.py")
    parsed = parse_check(check) if check else None
    return CommandSubject(argv, Path(sys.executable), folder, folder / "out", timeout, parsed)


def judged(folder: Path, text: str, check: str = "") -> TriageResult:
    """The verdict on a script."""
    return verdict.run(subject(folder, text, check), Journal(), quiet)


def under(found: TriageResult, name: str) -> Observation:
    """What a variant was observed to do."""
    (row,) = (row for row in found.tried if row.variant.name == name)
    return row.observation
