"""Commands under triage: real ones, by this Python."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.lab.fake_subject import quiet
from tests.unit.lab.triage.scripts import COMPILED, judged, subject, under
from tritonsmith.compiler import call
from tritonsmith.core.errors import StepError
from tritonsmith.facts import gpus
from tritonsmith.lab.journal import Journal, Observation, Verdict
from tritonsmith.lab.triage import program
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage.program import CommandSubject
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.lab.triage.verdict import Conclusion
from tritonsmith.worker.messages import OperatedRow


@pytest.mark.slow
def test_a_variable_that_helps(tmp_path: Path) -> None:
    text = "import os\nassert os.environ.get('DISABLE_LLVM_OPT') or os.environ.get('TRITON_INTERPRET')"
    found = judged(tmp_path, text)
    assert found.conclusion is Conclusion.DECIDED
    assert found.text == "LLVM's optimizations"
    assert "AssertionError" in (tmp_path / "out" / "nothing_changed" / "log").read_text(encoding="utf-8")


def test_the_cache_is_always_empty(tmp_path: Path) -> None:
    text = "import os, pathlib\np = pathlib.Path(os.environ['TRITON_CACHE_DIR'])\np.mkdir(parents=True)"
    runner = subject(tmp_path, text)
    assert runner.baseline().verdict is Verdict.GOOD
    assert runner.baseline().verdict is Verdict.GOOD, "mkdir fails where the folder is there"


def test_known_issues_of_what_a_program_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CommandSubject, "triton", "3.8.0")
    text = (
        "import json, os, pathlib\nfolder = pathlib.Path(os.environ['TRITON_CACHE_DIR'], 'key')\n"
        "folder.mkdir(parents=True)\n"
        "target = {'backend': 'hip', 'arch': 'gfx950', 'warp_size': 64}\n"
        "(folder / 'k.json').write_text(json.dumps({'name': 'k', 'target': target}))\n"
        "(folder / '__grp__k.json').write_text('no JSON')\n"
        "(folder / 'k.ttir').write_text('%4 = tt.dot_scaled %1 scale %2, %3, %0 lhs = bf16 rhs = e4m3')\n"
        "(folder / 'k.hsaco').write_bytes(bytes(range(256)))\n"
        "assert False"
    )
    (note,) = subject(tmp_path, text).baseline().notes
    assert note.startswith("affected by docs/passes-check.md: tl.dot_scaled ignores")


def test_what_comes_and_goes(tmp_path: Path) -> None:
    text = "import pathlib\np = pathlib.Path('count')\nn = p.exists()\np.touch()\nassert n"
    assert judged(tmp_path, text).conclusion is Conclusion.FLAKY


@pytest.mark.slow
def test_a_change_that_helps_only_once_does_not_count(tmp_path: Path) -> None:
    text = (
        "import os, pathlib\np = pathlib.Path('count')\n"
        "if os.environ.get('DISABLE_LLVM_OPT') and not p.exists():\n    p.touch()\nelse:\n    assert False"
    )
    seen = under(judged(tmp_path, text), "LLVM not optimizing")
    assert seen.verdict is Verdict.SKIP
    assert "flaky" in seen.why


@pytest.mark.slow
def test_another_failure_is_not_the_symptom(tmp_path: Path) -> None:
    text = "import os\nif os.environ.get('DISABLE_LLVM_OPT'):\n    raise KeyError('x')\nassert False"
    assert under(judged(tmp_path, text), "LLVM not optimizing").verdict is Verdict.OTHER


@pytest.mark.slow
def test_a_hang_says_where(tmp_path: Path) -> None:
    runner = subject(tmp_path, "import time\ndef stuck():\n    time.sleep(60)\nstuck()", timeout=1)
    seen = runner.baseline()
    assert seen.verdict is Verdict.BAD
    assert runner.kind == "hang"
    assert seen.figures == "no end after 1 s"
    assert "in stuck" in (tmp_path / "out" / "nothing_changed" / "log").read_text(encoding="utf-8")


@pytest.mark.slow
def test_what_was_compiled_tells_the_backend(tmp_path: Path) -> None:
    found = judged(tmp_path, f"{COMPILED}assert False")
    assert "no buffer instructions" not in {one.variant.name for one in found.tried}
    assert "no wgmma" in {one.variant.name for one in found.tried}


def test_a_command_that_asks_to_be_skipped(tmp_path: Path) -> None:
    assert subject(tmp_path, "raise SystemExit(125)").baseline().verdict is Verdict.SKIP


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    runner = CommandSubject(("no-such-program",), None, tmp_path, tmp_path / "out")
    with pytest.raises(StepError, match="cannot run no-such-program"):
        runner.baseline()


@pytest.mark.slow
def test_kernels_that_are_compiled_all_the_same_are_not_interpreted(tmp_path: Path) -> None:
    seen = under(judged(tmp_path, f"{COMPILED}assert False"), "interpreter")
    assert seen.verdict is Verdict.SKIP
    assert "not interpreted" in seen.why


def test_what_a_witness_says(tmp_path: Path) -> None:
    witness = TriageChange("consan", variables={"SAN": "1"}, says="Assertion `(.+)` failed")
    said = "print('k.py:3: block: [0] Assertion `no wait` failed.')"
    text = f"import os\nif os.environ.get('SAN'):\n    {said}\nassert False"
    runner = subject(tmp_path, text)
    runner.baseline()
    seen = runner.test(witness)
    assert (seen.verdict, seen.figures) == (Verdict.OTHER, "no wait")


def test_a_witness_that_cannot_run_says_nothing(tmp_path: Path) -> None:
    witness = TriageChange("consan", variables={"SAN": "1"}, says="Assertion `(.+)` failed")
    runner = subject(
        tmp_path, "import os\nif os.environ.get('SAN'):\n    raise RuntimeError('x')\nassert False"
    )
    runner.baseline()
    assert runner.test(witness).verdict is Verdict.SKIP


@pytest.mark.parametrize("checked", ["", "out ~ 1"])
def test_a_launcher_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, checked: str) -> None:
    """As gsan's: a module that runs the script, here one that finds something."""
    monkeypatch.setattr(gpus, "read", lambda: gpus.Gpus((gpus.Gpu("nvidia", "", "9.0"),)))
    said = "k.py:3: block: [0,0,0] Assertion `Write after read race detected` failed."
    runs = "sys.argv.pop(0)\nrunpy.run_path(sys.argv[0], run_name='__main__')"
    launcher = f"import runpy, sys\nprint({said!r})\n{runs}"
    (tmp_path / "launched.py").write_text(launcher, encoding="utf-8")
    [gsan] = [row.change for row in variants.every() if row.change.launcher]
    assert gsan.launcher == "triton.tools.gsan"
    ends = f"assert sys.argv[1:] == ['more']\nout = 2\nassert {bool(checked)}"
    text = f"import sys\n{COMPILED}{ends}"
    runner = subject(tmp_path, text)
    runner.argv = (*runner.argv, "more")
    runner.check = program.parse_check(checked) if checked else None
    assert runner.baseline().verdict is Verdict.BAD
    seen = runner.test(replace(gsan, launcher="launched"))
    assert (seen.verdict, seen.figures) == (Verdict.OTHER, "Write after read race detected")


def test_a_launcher_needs_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "read", lambda: gpus.Gpus((gpus.Gpu("nvidia", "", "9.0"),)))
    [gsan] = [row.change for row in variants.every() if row.change.launcher]
    runner = CommandSubject(("false",), None, tmp_path, tmp_path / "out")
    runner.baseline()
    seen = runner.test(gsan)
    assert seen.verdict is Verdict.SKIP
    assert "about a Python script" in seen.why


def test_a_tool_of_compute_sanitizer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said = "========= Invalid __global__ write of size 8 bytes\\n=========     at k+0x1 in k.py:6\\n"
    tool = tmp_path / "compute-sanitizer"
    tool.write_text(f'#!/bin/sh\nprintf \'{said}\' > "$6"\nshift 7\nexec "$@"\n', encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(gpus, "read", lambda: gpus.Gpus((gpus.Gpu("nvidia", "", "9.0"),)))
    memcheck = next(row.change for row in variants.every() if row.change.tool == "memcheck")
    runner = subject(tmp_path, "assert False")
    runner.baseline()
    seen = runner.test(memcheck)
    assert seen.figures == "Invalid __global__ write of size 8 bytes at k+0x1 in k.py:6"
    assert seen.verdict is Verdict.OTHER


def test_a_program_without_each_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pass surgery of a real Triton is in tests/integration; here two passes, one of which is needed."""
    runner = subject(tmp_path, "import os\nassert os.environ.get('WITHOUT') != 'b#1'")
    counted = Observation(Verdict.GOOD, notes=("a#1", "b#1"))
    monkeypatch.setattr(CommandSubject, "passes", lambda _self, _row: counted)
    monkeypatch.setattr(CommandSubject, "_operated", lambda _self, one, _results: {"WITHOUT": one.skip})
    compiled = OperatedRow("k", ({"times": 0},), "", {}, "")
    monkeypatch.setattr(call, "noted", lambda _results, _row: [compiled])
    found = program.knock_out(runner, Journal(), quiet)
    words = [row["without"] for row in program.knockout_as_json(found, check=False)["passes"]]
    assert words == ["succeeds", "succeeds", "fails"]


def test_the_triton_that_pythonpath_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As who works in a checkout has it: rows are of its release, not of the one beside the interpreter."""
    asked = subject(tmp_path, "")
    beside = asked.triton
    package = tmp_path / "checkout" / "triton"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '3.7.1'\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path / 'nothing'}:{package.parent}")
    assert asked.triton == "3.7.1" != beside
