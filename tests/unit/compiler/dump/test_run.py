"""Programs run so that dumps come out: their output, their exit code, what is set, what is left behind."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest

from tests.unit.compiler.dump.streams import banner, module
from tests.unit.compiler.test_run import place, wanted, where
from tritonsmith.compiler.dump import index as indexes
from tritonsmith.compiler.dump import run as dump_run
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.compiler.dump.run import Choices
from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, InterruptedRunError, SmithError
from tritonsmith.core.plan.steps.base import follow

__all__ = ["place", "where"]  # the fixtures

pytestmark = pytest.mark.usefixtures("home")

LOAD = "%0 = tt.load %arg0 : !tt.ptr<f32>"
PROGRAM = f"""
import os, sys, time
print("out")
sys.stderr.write({banner("A", "a") + module(LOAD)!r})
sys.stderr.write("mine\\n")
sys.stderr.write({banner("B", "b") + module(LOAD)!r})
sys.stderr.flush()
"""


def run(
    tmp_path: Path, more: str = "", choices: Choices | None = None, words: tuple[str, ...] = ()
) -> tuple[DumpIndex, int]:
    """A program that prints two dumps."""
    script = tmp_path / "script.py"
    script.write_text(PROGRAM + more)
    space = workspace.default()
    argv = (sys.executable, str(script), *words)
    return dump_run.dump_program(
        *dump_run.of_program(argv, space, choices or Choices(), tmp_path / "out"), space
    )


def test_the_program_keeps_its_output_and_its_exit_code(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    index, code = run(tmp_path, "print(sys.argv[1:]); sys.exit(7)", words=("a b", "--c"))
    assert code == 7
    assert [dump.name for dump in index.dumps] == ["A", "B"]
    said = capfd.readouterr()
    assert said.out == "out\n['a b', '--c']\n"
    assert said.err == "mine\n"
    assert index.python == sys.executable


def test_what_it_was_run_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITON_INTERPRET", "1")
    monkeypatch.setenv("MLIR_DUMP_PATH", "/somewhere")
    more = "import json; json.dump(dict(os.environ), open('seen', 'w'))"
    monkeypatch.chdir(tmp_path)
    index, _ = run(tmp_path, more, Choices(llvm=True, line_info=False, reproducers=True))
    seen = json.loads((tmp_path / "seen").read_text())
    assert {name: value for name, value in seen.items() if name in index.environ} == index.environ
    assert {
        "MLIR_ENABLE_DUMP",
        "MLIR_ENABLE_TIMING",
        "LLVM_IR_ENABLE_DUMP",
        "TRITON_DISABLE_LINE_INFO",
    } <= set(seen)
    assert not {"TRITON_INTERPRET", "MLIR_DUMP_PATH"} & set(seen)
    assert not Path(seen["TRITON_CACHE_DIR"]).exists()
    assert seen["TRITON_REPRODUCER_PATH"].startswith(str(tmp_path / "out"))


def test_reproducers_are_in_the_index(tmp_path: Path) -> None:
    more = "open(os.environ['TRITON_REPRODUCER_PATH'] + '.make_ttir.repro.mlir', 'w').write('module {}')"
    index, _ = run(tmp_path, more, Choices(reproducers=True))
    assert index.reproducers == ("reproducers/pipeline.make_ttir.repro.mlir",)


def test_what_the_compiler_left_in_the_cache_tells_its_version(tmp_path: Path) -> None:
    more = (
        "os.makedirs(os.environ['TRITON_CACHE_DIR'] + '/x')\n"
        "open(os.environ['TRITON_CACHE_DIR'] + '/x/add.json', 'w').write('{\"triton_version\": \"3.9.0\"}')"
    )
    assert run(tmp_path, more)[0].triton == "3.9.0"


def test_dumps_that_python_prints_are_in_order(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    more = "print('// -----// NVPTX Dump //----- //\\n.version 8.4\\n.entry add(\\n)\\n'); print('last')"
    index, _ = run(tmp_path, more, Choices(backend=True))
    assert [dump.stage for dump in index.dumps] == ["ttir", "ttir", "ptx"]
    assert capfd.readouterr().err == "out\nmine\nlast\n"


def test_a_program_that_dies_names_the_last_pass(tmp_path: Path) -> None:
    index, code = run(tmp_path, "os.kill(os.getpid(), 11)")
    assert code == 128 + signal.SIGSEGV
    assert (index.kernels[0].failed, index.kernels[0].error) == ("B", "the program died: signal 11")
    assert dump_run.failures(index) == ("add: B\n  the program died: signal 11",)


def test_nothing_of_the_run_is_left_but_the_dump(tmp_path: Path) -> None:
    run(tmp_path)
    space = workspace.default()
    assert [path.name for path in (space.root / "passes").rglob("*")] == [".work"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["add", "index.json", "output.log"]


def test_a_second_dump_takes_the_place_of_the_first(tmp_path: Path) -> None:
    run(tmp_path)
    assert len(run(tmp_path)[0].dumps) == 2


def test_a_program_that_is_not_there() -> None:
    with pytest.raises(FactError, match="no program"):
        dump_run.of_program(("no-such-program",), workspace.default(), Choices(), None)


def test_a_program_that_compiles_nothing(tmp_path: Path) -> None:
    space = workspace.default()
    prepared, step = dump_run.of_program((sys.executable, "-c", ""), space, Choices(), tmp_path / "out")
    index, code = dump_run.dump_program(prepared, step, space)
    assert code == 0
    with pytest.raises(SmithError, match="no pass"):
        dump_run.check(index)


def test_the_plan_is_a_script_that_runs_the_program(tmp_path: Path) -> None:
    prepared, _ = dump_run.of_program(
        (sys.executable, "my script.py", "a b"), workspace.default(), Choices(), tmp_path / "out"
    )
    text = prepared.plan.shell()
    assert "MLIR_ENABLE_DUMP=1 TRITON_ALWAYS_COMPILE=1" in text
    assert "'my script.py' 'a b' 2> " in text
    assert "passes.dump --from-log" in text


def test_the_run_acts_on_the_plan_that_a_dry_run_prints(tmp_path: Path) -> None:
    """An older dump in the folder included: its files are named."""
    run(tmp_path)
    space = workspace.default()
    argv = (sys.executable, "-c", "")
    prepared, step = dump_run.of_program(argv, space, Choices(), tmp_path / "out")
    printed = [line for step in prepared.plan.steps for line in step.shell()]
    (gone,) = (line for line in printed if line.startswith("rm -f -- "))
    assert str(tmp_path / "out" / "index.json") in gone
    dump_run.dump_program(prepared, step, space)
    done = [line[2:] for line in prepared.log.read_text().splitlines() if line.startswith("+ ")]
    assert done[-len(printed) :] == printed  # the first run may be of the same second, and so of the same log


def test_a_file_is_read_while_it_grows(tmp_path: Path) -> None:
    path = tmp_path / "log"
    heard: list[bytes] = []
    written = 0
    with path.open("wb", buffering=0) as writer, path.open("rb", buffering=0) as reader:

        def over() -> bool:
            nonlocal written
            if written < 4:  # the last one just before it is over
                writer.write(b"x")
                written += 1
            return written == 4

        follow(reader, over, heard.append, lambda: None)
    assert b"".join(heard) == b"xxxx"


@pytest.mark.parametrize("times", [1, 2])
def test_a_compile_that_cannot_be_leaves_a_folder_that_can_be_used_again(
    place: Path, where: Interpreter, times: int
) -> None:
    """No Triton; ^C is an exception at the same place."""
    (place / "site" / "triton" / "__init__.py").write_text("raise ImportError('gone')\n")
    asked = wanted(place)
    for _ in range(times):
        what = dump_run.of_kernel(asked, where, Choices(), place / "dump")
        with pytest.raises(SmithError, match="gone"):
            dump_run.dump_kernel(what, silent=True)
    assert indexes.read(place / "dump").dumps == ()


def test_what_came_before_an_interrupt_is_a_dump(
    place: Path, where: Interpreter, capsys: pytest.CaptureFixture[str]
) -> None:
    text = banner("A", "a") + module(LOAD)
    compiler = place / "site" / "triton" / "compiler" / "compiler.py"
    old = 'print("about to compile", file=sys.stderr)'
    assert old in compiler.read_text()
    more = f"sys.stderr.write({text!r}); sys.stderr.flush(); os.kill({os.getpid()}, 2); time.sleep(60)"
    compiler.write_text(compiler.read_text().replace(old, more))
    with pytest.raises((KeyboardInterrupt, InterruptedRunError)):
        dump_run.dump_kernel(dump_run.of_kernel(wanted(place), where, Choices(), place / "dump"), silent=True)
    assert [dump.name for dump in indexes.read(place / "dump").dumps] == ["A"]
    assert str(place / "dump") in capsys.readouterr().err


def test_what_a_killed_run_left_is_not_in_the_way(tmp_path: Path) -> None:
    """In containers another run soon has the same process id."""
    space = workspace.default()
    space.claim()
    work = space.root / "passes" / ".work" / str(os.getpid())
    (work / "cache").mkdir(parents=True)
    (work / "stream").write_text(banner("Old", "old") + module(LOAD))
    assert [dump.name for dump in run(tmp_path)[0].dumps] == ["A", "B"]
