"""`watch` as a process: files are saved, and what it says of that is read as it comes."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.integration.harness import LLVM, Smith, plant, ready, require_llvm
from tests.support import all_gone, command_of

PATIENCE = 300.0  # seconds
KERNEL = """
import triton
import triton.language as tl
from factors import factor


@triton.jit
def watched_scale(x_ptr, y_ptr, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y_ptr + at, tl.load(x_ptr + at) * factor())
"""
FACTORS = """
import triton


@triton.jit
def factor():
    return 2.0
"""
SLOW = """
import os, pathlib, sys, time
pathlib.Path("pid.txt").write_text(str(os.getpid()))
print("began", flush=True)
time.sleep(float(pathlib.Path("seconds.txt").read_text()))
print(pathlib.Path("answer.txt").read_text().strip())
sys.exit(int(pathlib.Path("code.txt").read_text()))
"""

STUBBORN = """
import os, pathlib, signal, time
signal.signal(signal.SIGINT, lambda *_: pathlib.Path("asked.txt").touch())
pathlib.Path("pid.txt").write_text(str(os.getpid()))
print("began", flush=True)
while True:
    time.sleep(1)
"""
LEAVES = """
import pathlib, subprocess, time
child = subprocess.Popen(("sleep", "600"))
pathlib.Path("pid.txt").write_text(str(child.pid))
print("began", flush=True)
time.sleep(0.5)
"""
WAIT = """import time
import triton


def wait():
    open({!r}, "w").close()
    time.sleep(600)
    return 2


SCALE = triton.language.constexpr(wait())
"""


@dataclass(frozen=True)
class Watcher:
    """A running `watch`.

    Attributes:
        process: it.
        lines: of both outputs; None at their end.
    """

    process: subprocess.Popen[str]
    lines: queue.SimpleQueue[str | None]

    def until(self, *words: str) -> list[str]:
        """The next lines, until one has all the words."""
        found: list[str] = []
        until = time.monotonic() + PATIENCE
        while not found or not all(word in found[-1] for word in words):
            line = self.lines.get(timeout=max(0.1, until - time.monotonic()))
            assert line is not None, f"it ended before {words} was seen: {found}"
            found.append(line)
        return found

    def quiet(self, seconds: float) -> bool:
        """Whether it says nothing for so long."""
        time.sleep(seconds)
        return self.lines.empty()

    def family(self) -> list[psutil.Process]:
        """It, and all that it has started."""
        me = psutil.Process(self.process.pid)
        return [me, *me.children(recursive=True)]

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Stop it; its exit code."""
        family = self.family()
        self.process.send_signal(number)
        code = self.process.wait(PATIENCE)
        assert all_gone(family), [command_of(one) for one in family]
        return code


@contextmanager
def watching(smith: Smith, *argv: str) -> Iterator[Watcher]:
    with smith.running("watch", *argv) as process:
        lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

        def read(stream: Iterator[str]) -> None:
            for line in stream:
                lines.put(line.rstrip("\n"))
            lines.put(None)

        assert process.stdout
        assert process.stderr
        threads = [threading.Thread(target=read, args=(one,)) for one in (process.stdout, process.stderr)]
        for thread in threads:
            thread.start()
        try:
            yield Watcher(process, lines)
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(PATIENCE)
            for thread in threads:
                thread.join()


@pytest.fixture
def slow(with_wheel: Smith, tmp_path: Path) -> Smith:
    """A program whose time, answer and exit code are files."""
    (tmp_path / "slow.py").write_text(SLOW)
    say(tmp_path, "first")
    return with_wheel.beside(tmp_path)


def say(folder: Path, answer: str, code: int = 0, seconds: float = 0.0) -> None:
    (folder / "seconds.txt").write_text(str(seconds))
    (folder / "code.txt").write_text(str(code))
    (folder / "answer.txt").write_text(f"{answer}\n")


def began(watch: Watcher, folder: Path) -> psutil.Process:
    """The program, once it runs."""
    watch.until("began")
    return psutil.Process(int((folder / "pid.txt").read_text()))


@pytest.mark.slow
def test_the_table_of_a_kernel(with_wheel: Smith, tmp_path: Path) -> None:
    kernel, factors = tmp_path / "watched_scale.py", tmp_path / "factors.py"
    kernel.write_text(KERNEL)
    factors.write_text(FACTORS)
    task = f"kernel.resources {kernel.name} --signature '*fp32,*fp32,256' --target h100 --out made"
    with watching(with_wheel.beside(tmp_path), "--run", task) as watch:
        first = "\n".join(watch.until(" ok (run "))
        assert "resources, NVIDIA" in first
        assert "cuda:90:32" in first
        kernel.write_text(KERNEL.replace("* factor()", "* factor() + tl.load(x_ptr + 2 * at)"))
        changed = "\n".join([*watch.until("watched_scale.py: changed, ok"), *watch.until("global load")])
        assert "resources, NVIDIA" in changed
        assert " → " in changed
        kernel.write_text(KERNEL + ")\n")
        watch.until("watched_scale.py: ok → exit code 1")
        watch.until("error: cannot parse this file as Python")
        kernel.write_text(KERNEL)
        watch.until("watched_scale.py: exit code 1 → ok, changed")
        factors.write_text(FACTORS + "\n\n# no other kernel\n")
        watch.until("factors.py: unchanged, ok")
        assert watch.end() == 130


def test_a_command_of_the_user_s(slow: Smith) -> None:
    folder = slow.cwd
    with watching(slow, "--path", "answer.txt", "--", "python3", "slow.py") as watch:
        assert "first" in watch.until(" ok (run ")
        say(folder, "second")
        watch.until("answer.txt: changed, ok")
        assert watch.until("+second")[-2:] == ["-first", "+second"]
        say(folder, "third", code=3)
        watch.until("ok → exit code 3")
        watch.until("third")
        say(folder, "third", code=3)
        watch.until("unchanged, still exit code 3")
        (folder / "README.md").write_text("")
        (folder / ".answer.txt.swp").write_text("")
        assert watch.quiet(0.5)
        assert watch.end() == 130


def test_saves_of_one_size_within_a_second_run_what_was_saved_last(
    slow: Smith, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    assert slow.cwd
    helper = slow.cwd / "helper.py"
    (slow.cwd / "main.py").write_text("import helper\nprint('number', helper.NUMBER)\n")
    helper.write_text("NUMBER = 1\n")
    with watching(slow, "--path", "helper.py", "--", "python3", "main.py") as watch:
        watch.until(" ok (run ")
        moment = helper.stat().st_mtime
        for number in (2, 3, 4):
            helper.write_text(f"NUMBER = {number}\n")
            os.utime(helper, (moment, moment))  # as two saves within one second look to Python
            watch.until("helper.py: changed, ok")
            watch.until(f"+number {number}")
        assert watch.end() == 130


def test_a_save_during_a_run_starts_anew(slow: Smith) -> None:
    folder = slow.cwd
    say(folder, "first", seconds=600)
    with watching(slow, "--path", "answer.txt", "--", "python3", "slow.py") as watch:
        old = began(watch, folder)
        say(folder, "second")
        watch.until("second")
        watch.until(" ok (run ")
        assert all_gone([old])


def test_an_interrupt_while_a_save_stops_the_run_is_not_lost(slow: Smith) -> None:
    folder = slow.cwd
    (folder / "stubborn.py").write_text(STUBBORN)
    with watching(slow, "--path", "answer.txt", "--", "python3", "stubborn.py") as watch:
        run = began(watch, folder)
        say(folder, "second")
        until = time.monotonic() + PATIENCE
        while not (folder / "asked.txt").exists():
            assert time.monotonic() < until
            time.sleep(0.02)
        assert watch.end() == 130
        assert all_gone([run])


def test_a_child_in_the_background_does_not_delay_the_verdict_and_ends_with_the_run(slow: Smith) -> None:
    folder = slow.cwd
    (folder / "leaves.py").write_text(LEAVES)
    with watching(slow, "--path", "answer.txt", "--", "python3", "leaves.py") as watch:
        left = began(watch, folder)
        watch.until(" ok (run ")
        assert all_gone([left])
        assert watch.end() == 130


def test_a_command_that_writes_what_is_watched_is_told(slow: Smith) -> None:
    write = "import time; open('answer.txt', 'w').write(str(time.time()))"
    with watching(slow, "--path", "answer.txt", "--", "python3", "-c", write) as watch:
        watch.until("answer.txt was saved at each of the last 3 runs: does the command write this?")
        assert watch.end() == 130


def test_a_command_ends_with_a_watch_that_is_killed(slow: Smith) -> None:
    say(slow.cwd, "never", seconds=600)
    with watching(slow, "--path", "answer.txt", "--", "python3", "slow.py") as watch:
        run = began(watch, slow.cwd)
        watch.process.kill()
        assert all_gone([run])


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_nothing_is_left_behind(slow: Smith, number: signal.Signals) -> None:
    say(slow.cwd, "never", seconds=600)
    with watching(slow, "--path", "answer.txt", "--", "python3", "slow.py") as watch:
        run = began(watch, slow.cwd)
        assert watch.end(number) == 130
        assert all_gone([run])


def text_of(holder: Path) -> str:
    """Other tests share the workspace: a lock of theirs may be gone by now."""
    try:
        return holder.read_text(encoding="utf-8")
    except FileNotFoundError:
        return ""


@pytest.mark.slow
def test_a_run_of_a_kernel_is_stopped_with_its_workers(with_wheel: Smith, tmp_path: Path) -> None:
    kernel = tmp_path / "watched_slow.py"
    slow = KERNEL.replace("import triton\n", WAIT.format(str(tmp_path / "began")), 1)
    kernel.write_text(slow.replace("* factor()", "* factor() * SCALE"))
    (tmp_path / "factors.py").write_text(FACTORS)
    task = f"kernel.resources {kernel.name} --signature '*fp32,*fp32,256' --target h100 --out made_slowly"
    with watching(with_wheel.beside(tmp_path), "--run", task) as watch:
        deadline = time.monotonic() + PATIENCE
        while not (tmp_path / "began").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert watch.end() == 130
    assert not [text for text in map(text_of, with_wheel.home.rglob("*.holder")) if "made_slowly" in text]
    assert not [*tmp_path.rglob("*.holder")]


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """Mini-Triton, built. mlir-tblgen writes spaces into dependency files as they are, so there are none."""
    require_llvm()
    root = tmp_path_factory.mktemp("watched")
    made = ready(Smith(root, cwd=plant("mini_triton", root / "checkout")), tmp_path_factory)
    made("setup-mlir", "--provider", "system", "--llvm-dir", LLVM)
    made("build-triton", "--debug")
    return made


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


@pytest.mark.slow
def test_lit_tests_of_a_compiler(compiler: Smith) -> None:
    """TableGen, C++, an error and its mending, the test itself."""
    ops = compiler.cwd / "include" / "triton" / "Dialect" / "Triton" / "IR" / "TritonOps.td"
    source = compiler.cwd / "lib" / "Dialect" / "Triton" / "IR" / "Dialect.cpp"
    test = compiler.cwd / "test" / "twice.mlir"
    with watching(compiler, "--lit", "twice") as watch:
        first = watch.until(" ok (build ")
        assert any("twice.mlir" in line and "PASS" in line for line in first)
        replace(ops, '"twice"', '"thrice"')
        watch.until("TritonOps.td: ok → exit code 1 (build ")
        watch.until("twice.mlir", "PASS → FAIL")
        replace(ops, '"thrice"', '"twice"')
        watch.until("TritonOps.td: exit code 1 → ok, unchanged (build ")
        replace(source, "#include", "#error here\n#include")
        watch.until("Dialect.cpp: ok → build, exit code 1 (build ")
        watch.until("error: build triton-opt failed")
        watch.until("Dialect.cpp:", "where")
        replace(source, "#error here\n#include", "#error there\n#include")
        watch.until("Dialect.cpp: changed, still build, exit code 1 (build ")
        replace(source, "#error there\n#include", "#include")
        watch.until("Dialect.cpp: build, exit code 1 → ok, unchanged (build ")
        test.write_text(f"// {test.read_text()}")
        assert "build" not in watch.until("twice.mlir: ")[-1], "a test is not compiled"
        replace(test, "// // RUN", "// RUN")
        watch.until("twice.mlir: ", "ok")
        (compiler.cwd / "README.md").write_text("")
        (compiler.cwd / ".git" / "description").write_text("")
        assert watch.quiet(0.5)
        assert watch.end() == 130
    assert list(compiler.home.rglob("*.holder")) == []


def test_test_triton_runs_them_once(compiler: Smith) -> None:
    test = compiler.cwd / "test" / "twice.mlir"
    told = json.loads(compiler("test-triton", "--json", "test/twice.mlir").out)
    assert told["counts"] == {"lit": {"passed": 1, "failed": 0, "known": 0, "skipped": 0}}
    text = test.read_text()
    test.write_text(text.replace("CHECK:", "CHECK: no such text", 1))
    try:
        failed = compiler("test-triton", "--lit", "--no-build", code=1)
        assert "no such text" in failed.out
        assert "1 of 1 tests failed" in failed.err
    finally:
        test.write_text(text)
    assert "no test ran" in compiler("test-triton", "--interpreter", code=6).err


@pytest.mark.slow
def test_a_save_during_a_build_starts_anew(compiler: Smith) -> None:
    source = compiler.cwd / "lib" / "Dialect" / "Triton" / "IR" / "Dialect.cpp"
    text = source.read_text()
    with watching(compiler, "--", "triton-opt", "--version") as watch:
        watch.until("exit code 1")
        watch.end()
    opt = str(compiler.build() / "bin" / "triton-opt")
    python = compiler.cwd / "python" / "triton" / "__init__.py"
    with watching(compiler, "--", opt, "test/twice.mlir") as watch:
        watch.until(" ok (build ")
        replace(python, "\n", "\n\n")
        assert "build" not in watch.until("__init__.py: unchanged, ok")[-1]
        source.write_text(f"#error first\n{text}")
        watch.until("[build triton-opt] ...")
        source.write_text(f"// second\n{text}")
        line = watch.until("Dialect.cpp: ")[-1]
        if "exit code 1" in line:  # that build was over before
            line = watch.until("Dialect.cpp: ")[-1]
        assert "ok" in line
        source.write_text(text)
        watch.until("[build triton-opt] ...")
        assert watch.end() == 130
    assert compiler("build-triton", "--debug", "--for", "opt").code == 0


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["--run", "kernel.resorces m.py"], "did you mean 'kernel.resources'?"),
        (["--run", "kernel.resources --no-such-flag"], "--run: "),
        (["--run", "watch"], "watch cannot watch itself"),
        (["--run", "env.list", "--source", "."], "--source is for a command"),
        (["--source", "no/such/folder", "--", "true"], "no such folder"),
        (["--run", "env.list"], "nothing to watch"),
        (["--run", "env.list", "--path", "no/such/file"], "no such file or folder"),
        (["--run", "env.list", "--", "true"], "--run and -- contradict"),
        (["--run", "env.list", "--lit", ""], "--run and --lit contradict"),
        ([], "nothing to run"),
        (["kernel.compile", "my kernel.py"], """--run 'kernel.compile '"'"'my kernel.py'"'"''"""),
        (["--run", "passes.list dump", "--env", "x"], "--run 'passes.list dump --env x'"),
        (["--lit", "["], "is not a valid regular expression"),
    ],
)
def test_what_cannot_be_watched(slow: Smith, argv: list[str], says: str) -> None:
    assert says in slow("watch", *argv, code=2).err


def test_tests_of_what_was_never_built(slow: Smith) -> None:
    assert "has no build of Triton" in slow("watch", "--lit", "", "--env", "debug", code=1).err
