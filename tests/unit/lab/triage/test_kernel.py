"""A kernel under triage: what counts as its symptom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.compare.making import point, written
from tritonsmith.compiler import run, targets
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.run import Toolchain
from tritonsmith.core.envs import workspace
from tritonsmith.lab.model import Verdict
from tritonsmith.lab.triage.kernel import KernelSubject

pytestmark = pytest.mark.unit


def compiled(folder: Path, shared: int, **more: object) -> Manifest:
    """A compile for sm_80 that wants so much dynamic shared memory for a block."""
    made = replace(point("cuda:80:32"), metadata={"shared": shared}, **more)  # type: ignore[arg-type]
    return written(folder, [made])


@pytest.fixture
def subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> KernelSubject:
    """A kernel that compiles, and wants four stages of 64 KiB; sm_80 has 163 KiB for a block."""
    asked = CompileRequest(tmp_path / "k.py", "k", "*fp32", targets.parse_all(["sm_80"]))
    made = compiled(tmp_path / "base", 4 * 64 * 1024)
    monkeypatch.setattr(run, "compile_all", lambda *_, **__: made)
    return KernelSubject(
        asked, Toolchain(tmp_path / "python", workspace.default(), tmp_path, 1, 60), (), tmp_path / "out"
    )


def test_code_that_cannot_be_launched_is_a_symptom(subject: KernelSubject) -> None:
    seen = subject.baseline()
    assert (seen.verdict, seen.figures) == (Verdict.BAD, "cannot launch: shared 262144 > 166912 B")
    assert "it compiles" in seen.notes[0]
    assert subject.kind == "limit"


def test_less_of_too_much_is_the_same_symptom(subject: KernelSubject, tmp_path: Path) -> None:
    subject.baseline()
    assert subject.look(compiled(tmp_path / "less", 3 * 64 * 1024)).verdict is Verdict.BAD
    assert subject.look(compiled(tmp_path / "fits", 64 * 1024)).verdict is Verdict.GOOD
    failed = compiled(tmp_path / "fails", 0, status="failed", error="error: no")
    assert subject.look(failed).verdict is Verdict.OTHER
