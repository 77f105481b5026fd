from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from tests.support import all_gone
from tritonsmith.core import process
from tritonsmith.core.plan import programs, stopping

# Says that it is up, starts a child of its own, and does not care about ^C (nor TERM, if told so).
STUBBORN = """
import signal, subprocess, sys, time
for number in sys.argv[1:]:
    signal.signal(int(number), signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
print("up", child.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "GRACE_AFTER_INT", 0.1)
    monkeypatch.setattr(stopping, "GRACE_AFTER_TERM", 0.1)


def python(code: str, *args: str) -> tuple[str, ...]:
    return (sys.executable, "-c", code, *args)


def test_stream_gives_lines_of_both_streams_and_the_exit_code(tmp_path: Path) -> None:
    code = """
import os, sys
print(os.getcwd(), os.environ["SMITH"], sorted(os.environ) == ["LC_CTYPE", "SMITH"], flush=True)
print("error", file=sys.stderr, flush=True)
sys.stdout.buffer.write(b"bad \\xff utf-8\\r\\nno end")
sys.exit(7)
"""
    lines: list[str] = []
    environ = {"SMITH": "x", "LC_CTYPE": "C.UTF-8"}
    assert programs.stream(python(code), cwd=tmp_path, env=environ, on_line=lines.append) == 7
    assert lines == [f"{tmp_path} x True", "error", "bad \N{REPLACEMENT CHARACTER} utf-8", "no end"]


def test_a_child_in_the_background_that_keeps_the_pipe_open_is_not_waited_for(tmp_path: Path) -> None:
    code = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid)
sys.exit(4)
"""
    seen: list[psutil.Process] = []
    try:
        ended = programs.stream(
            python(code),
            cwd=tmp_path,
            env=os.environ,
            on_line=lambda line: seen.append(psutil.Process(int(line))),
        )
        assert ended == 4
        assert seen[0].is_running()
    finally:
        for one in seen:
            one.kill()


@pytest.mark.parametrize("ending", ["\\n", "\\r\\n", "\\r"])
def test_lines_are_whole_however_they_come(tmp_path: Path, ending: str) -> None:
    code = f"""
import sys, time
for piece in ("é".encode()[:1], "é".encode()[1:] + b"1{ending}", b"2{ending}", b"3"):
    sys.stdout.buffer.write(piece)
    sys.stdout.buffer.flush()
    time.sleep(0.05)
"""
    seen: list[str] = []
    assert programs.stream(python(code), cwd=tmp_path, env=os.environ, on_line=seen.append) == 0
    assert seen == ["é1", "2", "3"]


def test_stream_gives_no_standard_input(tmp_path: Path) -> None:
    lines: list[str] = []
    argv = python("import sys; print(repr(sys.stdin.read()))")
    assert programs.stream(argv, cwd=tmp_path, env=os.environ, on_line=lines.append) == 0
    assert lines == ["''"]


def test_stream_of_a_missing_program(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        programs.stream(("no-such-program",), cwd=tmp_path, env={"PATH": "/usr/bin:/bin"}, on_line=print)


@pytest.mark.parametrize("ignored", [[], ["2"], ["2", "15"]], ids=["none", "INT", "INT and TERM"])
@pytest.mark.parametrize("kind", [KeyboardInterrupt, OSError], ids=["^C", "full disk"])
def test_whatever_ends_the_stream_stops_the_whole_group(
    tmp_path: Path, ignored: list[str], kind: type[BaseException]
) -> None:
    seen: list[psutil.Process] = []

    def on_line(line: str) -> None:
        child = psutil.Process(int(line.split()[1]))
        seen.extend((child, *child.parents()[:1]))
        raise kind

    with pytest.raises(kind):
        programs.stream(python(STUBBORN, *ignored), cwd=tmp_path, env=os.environ, on_line=on_line)
    assert len(seen) == 2
    assert all_gone(seen)


def test_a_program_that_reacts_to_int_is_not_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "GRACE_AFTER_INT", 60.0)
    tidy = """
import pathlib, time
try:
    print("up", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("x" * 1000, flush=True)
    pathlib.Path("tidied").touch()
"""

    def on_line(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        programs.stream(python(tidy), cwd=tmp_path, env=os.environ, on_line=on_line)
    assert (tmp_path / "tidied").exists()


def test_a_second_interrupt_takes_the_next_stair(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever presses ^C twice wants it to stop sooner, not to leave it running."""
    argv = python(STUBBORN, "2", "15")
    with subprocess.Popen(argv, stdout=-1, start_new_session=True, encoding="utf-8") as started:
        assert started.stdout is not None
        child = psutil.Process(int(started.stdout.readline().split()[1]))
        waits = iter((KeyboardInterrupt, KeyboardInterrupt))
        wait = started.wait

        def interrupted(timeout: float | None = None) -> int:
            for error in waits:
                raise error
            code: int = wait(timeout)
            return code

        monkeypatch.setattr(started, "wait", interrupted)
        with pytest.raises(KeyboardInterrupt):
            stopping.stop(started)
        assert started.returncode == -9
    assert all_gone([child])


def test_stop_of_a_process_that_ended() -> None:
    with subprocess.Popen(("true",), start_new_session=True, encoding="utf-8") as ended:
        ended.wait()
        stopping.stop(ended)
        assert ended.returncode == 0


@pytest.mark.parametrize(
    ("code", "output"),
    [
        ("print(' said ')", "said"),
        ("import locale; print(locale.setlocale(locale.LC_ALL, ''), locale.getencoding())", "C.UTF-8 UTF-8"),
        ("raise SystemExit(3)", None),
        ("import time; time.sleep(600)", None),
    ],
)
def test_capture(code: str, output: str | None, tmp_path: Path) -> None:
    timeout = 0.2 if "sleep" in code else 20.0
    assert process.capture(python(code), cwd=tmp_path, timeout=timeout) == output


def test_a_python_whose_site_packages_name_a_folder_beyond_ascii(tmp_path: Path) -> None:
    venv = tmp_path / "mein Code é"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", venv), check=True)
    (site,) = venv.glob("lib/python*/site-packages")
    (site / "sources.pth").write_text(f"{venv}/src\n", encoding="utf-8")
    (venv / "src").mkdir()
    assert (
        process.capture((str(venv / "bin" / "python"), "-c", "import sys; print(sys.path[-1])"))
        == f"{venv}/src"
    )


def test_capture_of_a_missing_program() -> None:
    assert process.capture(("no-such-program",)) is None


def test_a_captured_program_returns_its_output(tmp_path: Path) -> None:
    code = 'import os, sys; print(os.environ["A"]); print("b", file=sys.stderr); sys.exit(3)'
    answer = programs.CapturedProgram().run(python(code), cwd=tmp_path, change={"A": "a"}, timeout=60)
    assert answer == process.CommandOutput(3, "a", "b")
    assert programs.CapturedProgram().run(("no-such-program",), change={}, timeout=60) is None


@pytest.mark.parametrize("way", ["stop", "timeout", "close"])
def test_a_captured_program_is_killed_with_its_children(tmp_path: Path, way: str) -> None:
    """It ignores what a program can ignore, and its child, whose number is in the file, would go on."""
    file = tmp_path / "up"
    argv = (
        "sh",
        "-c",
        f"trap '' INT TERM; sleep 600 & echo $! > '{file}.new'; mv '{file}.new' '{file}'; wait",
    )
    program = programs.CapturedProgram()
    children: list[psutil.Process] = []

    def stop() -> bool:
        if file.exists() and not children:
            children.append(psutil.Process(int(file.read_text())))
            if way == "close":
                threading.Thread(target=program.close).start()
        return way == "stop" and bool(children)

    assert program.run(argv, change={}, timeout=2 if way == "timeout" else 60, stop=stop) is None
    assert children
    assert all_gone(children)
    assert program.is_closed == (way == "close")
    if way == "close":
        assert program.run(("true",), change={}, timeout=60) is None


def test_a_captured_program_that_has_ended_is_not_waited_for() -> None:
    """Its child holds its output open, also from a session of its own."""
    argv = python("""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
print(child.pid)
""")
    answer = programs.CapturedProgram().run(argv, change={}, timeout=300)
    assert answer
    assert answer.code == 0
    psutil.Process(int(answer.out)).kill()
