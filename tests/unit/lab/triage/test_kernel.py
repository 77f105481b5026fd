"""A kernel under triage: what counts as its symptom."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.compare.making import point, written
from tritonsmith.compiler import run, source_tree, targets
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import digest
from tritonsmith.lab import journal
from tritonsmith.lab import terms as language
from tritonsmith.lab.journal import Observation, Verdict
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
        asked, Interpreter(tmp_path / "python", workspace.default(), tmp_path, 1, 60), (), tmp_path / "out"
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


KERNEL = "import triton\nfrom helper import block\n@triton.jit\ndef k(a): block\n"


@pytest.fixture
def keyed(subject: KernelSubject, monkeypatch: pytest.MonkeyPatch) -> KernelSubject:
    """The same with its sources, and with an interpreter that is always the same."""
    monkeypatch.setattr(journal, "python", str)
    subject.request.file.write_text(KERNEL)
    (subject.request.file.parent / "helper.py").write_text("block = 1")
    return subject


def test_what_a_compile_depends_on(keyed: KernelSubject, monkeypatch: pytest.MonkeyPatch) -> None:
    before = digest(keyed.key)
    assert digest(keyed.key) == before
    assert digest(replace(keyed, where=replace(keyed.where, timeout=7)).key) != before
    assert digest(replace(keyed, where=replace(keyed.where, variables={"A": "1"})).key) != before
    assert digest(replace(keyed, request=replace(keyed.request, signature="*fp16")).key) != before
    monkeypatch.setenv("TRITON_F32_DEFAULT", "ieee")
    assert digest(keyed.key) != before
    monkeypatch.delenv("TRITON_F32_DEFAULT")
    (keyed.request.file.parent / "helper.py").write_text("block = 2")
    assert digest(keyed.key) != before


def test_sources_that_cannot_be_read_are_never_the_same(
    keyed: KernelSubject, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise SmithError("it imports more than 2000 files")

    monkeypatch.setattr(source_tree, "of", refuse)
    assert digest(keyed.key) != digest(keyed.key)


def test_a_file_of_ir_is_its_own_source(keyed: KernelSubject, tmp_path: Path) -> None:
    file = tmp_path / "k.ttgir"
    file.write_text("module {}")
    of_ir = replace(keyed, request=replace(keyed.request, file=file))
    assert of_ir.request.from_ir
    before = digest(of_ir.key)
    assert digest(of_ir.key) == before
    file.write_text("module { }")
    assert digest(of_ir.key) != before


def test_times_of_a_run_that_was_stopped_count_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change is quicker if it is so than the quickest compile to the same code: one of the stopped run."""

    def timed(folder: Path, seconds: float, code: bytes) -> Manifest:
        made = replace(point("cuda:80:32"), seconds=seconds)
        whole = written(folder, [made])
        binary = whole.folder / whole.points[0].stages["cubin"].path
        binary.write_bytes(binary.read_bytes() + code)
        return whole

    first = timed(tmp_path / "base", 10.0, b"same")
    monkeypatch.setattr(run, "compile_all", lambda *_, **__: first)
    asked = CompileRequest(tmp_path / "k.py", "k", "*fp32", targets.parse_all(["sm_80"]))
    where = Interpreter(tmp_path / "python", workspace.default(), tmp_path, 1, 60)
    terms = language.parse(("compile_seconds>5",), "--when")
    stopped, resumed = (KernelSubject(asked, where, terms, tmp_path / "out") for _ in range(2))
    baseline = stopped.baseline()
    assert (baseline.verdict, baseline.cpu_seconds) == (Verdict.BAD, 10.0)
    same = replace(baseline, cpu_seconds=5.2)
    resumed.baseline()
    resumed.resume([baseline, same, Observation(Verdict.BAD, code="another", cpu_seconds=0.1)])
    faster = timed(tmp_path / "faster", 4.9, b"other")
    assert stopped.look(faster).verdict is Verdict.GOOD
    assert resumed.look(faster).verdict is Verdict.SKIP, "little faster than code that is the same"
