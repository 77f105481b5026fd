"""Commands under triage: real ones, by this Python."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tritonsmith.errors import StepError
from tritonsmith.triage import verdict
from tritonsmith.triage.observation import Seen
from tritonsmith.triage.program import CommandSubject
from tritonsmith.triage.verdict import Answer, TriageVerdict


def subject(folder: Path, text: str, timeout: int = 0) -> CommandSubject:
    """A script."""
    (folder / "script.py").write_text(text, encoding="utf-8")
    out = folder / "out"
    return CommandSubject((sys.executable, "script.py"), Path(sys.executable), folder, out, timeout)


def judged(folder: Path, text: str) -> TriageVerdict:
    """Its verdict."""
    return verdict.run(subject(folder, text), lambda _name, _seen: None)


def test_a_variable_that_helps(tmp_path: Path) -> None:
    text = "import os\nassert os.environ.get('DISABLE_LLVM_OPT') or os.environ.get('TRITON_INTERPRET')"
    found = judged(tmp_path, text)
    assert found.answer is Answer.DECIDED
    assert found.text == "LLVM's optimizations"
    assert "AssertionError" in (tmp_path / "out" / "nothing_changed" / "log").read_text(encoding="utf-8")


def test_the_cache_is_always_empty(tmp_path: Path) -> None:
    text = "import os, pathlib\np = pathlib.Path(os.environ['TRITON_CACHE_DIR'])\np.mkdir(parents=True)"
    runner = subject(tmp_path, text)
    assert runner.baseline().seen is Seen.GONE
    assert runner.baseline().seen is Seen.GONE, "mkdir fails where the folder is there"


def test_what_comes_and_goes(tmp_path: Path) -> None:
    text = "import pathlib\np = pathlib.Path('count')\nn = p.exists()\np.touch()\nassert n"
    assert judged(tmp_path, text).answer is Answer.FLAKY


def test_a_change_that_helps_only_once_does_not_count(tmp_path: Path) -> None:
    text = (
        "import os, pathlib\np = pathlib.Path('count')\n"
        "if os.environ.get('DISABLE_LLVM_OPT') and not p.exists():\n    p.touch()\nelse:\n    assert False"
    )
    found = judged(tmp_path, text)
    [row] = [one for one in found.tried if one.variant.name == "LLVM not optimizing"]
    assert row.observation.seen is Seen.UNTESTED
    assert "comes and goes" in row.observation.why


def test_another_failure_is_not_the_symptom(tmp_path: Path) -> None:
    text = "import os\nif os.environ.get('DISABLE_LLVM_OPT'):\n    raise KeyError('x')\nassert False"
    found = judged(tmp_path, text)
    [row] = [one for one in found.tried if one.variant.name == "LLVM not optimizing"]
    assert row.observation.seen is Seen.OTHER


def test_a_hang_says_where(tmp_path: Path) -> None:
    runner = subject(tmp_path, "import time\ndef stuck():\n    time.sleep(60)\nstuck()", timeout=1)
    seen = runner.baseline()
    assert seen.seen is Seen.SHOWS
    assert runner.kind == "hang"
    assert seen.figures == "no end after 1 s"
    assert "in stuck" in (tmp_path / "out" / "nothing_changed" / "log").read_text(encoding="utf-8")


def test_what_was_compiled_tells_the_backend(tmp_path: Path) -> None:
    text = (
        "import os, pathlib\np = pathlib.Path(os.environ['TRITON_CACHE_DIR'], 'key')\n"
        "p.mkdir(parents=True)\n(p / 'k.ptx').touch()\nassert False"
    )
    found = judged(tmp_path, text)
    assert "no buffer instructions" not in {one.variant.name for one in found.tried}
    assert "no wgmma" in {one.variant.name for one in found.tried}


def test_a_command_that_asks_to_be_skipped(tmp_path: Path) -> None:
    assert subject(tmp_path, "raise SystemExit(125)").baseline().seen is Seen.UNTESTED


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    runner = CommandSubject(("no-such-program",), None, tmp_path, tmp_path / "out")
    with pytest.raises(StepError, match="cannot run no-such-program"):
        runner.baseline()
