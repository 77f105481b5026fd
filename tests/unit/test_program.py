"""The installed programs, each run once or twice; tests/unit/cli has the rest, without new processes."""

from __future__ import annotations

import json
import os
import runpy
import signal
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from invoke.program import Program

from tritonsmith import __version__
from tritonsmith.cli import pages, program
from tritonsmith.cli.tasks import namespace, task
from tritonsmith.core.errors import EXIT_BUG, EXIT_INTERRUPTED
from tritonsmith.core.plan import files

BIN = Path(sys.executable).parent
REPOSITORY = Path(__file__).parents[2]


def run(cwd: Path, program: str, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run((str(BIN / program), *argv), cwd=cwd, capture_output=True, text=True, check=False)


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    folder = tmp_path / "another folder"
    folder.mkdir()
    return folder


@pytest.mark.slow
def test_tritonsmith_works_from_any_folder(elsewhere: Path) -> None:
    done = run(elsewhere, "tritonsmith", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in namespace.task_names)
    done = run(elsewhere, "tritonsmith", "--version")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"tritonsmith {__version__}\n", "")


@pytest.mark.slow
def test_words_that_no_file_can_have_as_a_name(elsewhere: Path) -> None:
    done = run(elsewhere, "tritonsmith", "pins", "a" * 5_000)
    assert done.returncode == 2
    assert "error: pins does not take the argument" in done.stderr
    assert "Traceback" not in done.stderr
    done = run(
        elsewhere, "tritonsmith", "--complete", "--", f"tritonsmith passes.diff {'a' * 5_000} tritongpu-coal"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "tritongpu-coalesce" in done.stdout.splitlines()


_OFFERED = {
    "kernel.comp": {"kernel.compile"},
    "doctor --d": {"--deep", "--dry-run"},
    "kernel.compile --resources --tar": {"--target"},
    "doctor --env de": {"dev", "debug"},
    "kernel.compile k.py --target h": {"h100", "h200"},
    "kernel.compile k.py --target=a10": {"a10", "a100"},
    "explain --pipeline --target h100,b": {"h100,b200", "h100,b300"},
    "doctor --only tools.cmake-": {"tools.cmake-on-path"},
    "passes.diff no-dump tritongpu-coal": {"tritongpu-coalesce", "tritongpu-coalesce-async-copy"},
    "kernel.compile k": set(),
}


@cache
def _completed(cwd: Path) -> dict[str, set[str]]:
    """What one shell offers for each of these lines; each Tab starts the tool."""
    script = (
        'eval "$(tritonsmith --print-completion-script=bash)"\n'
        'for line in "$@"; do COMP_LINE="tritonsmith $line"; COMP_POINT=${#COMP_LINE}; COMPREPLY=()\n'
        '_complete_tritonsmith; echo "${COMPREPLY[@]}"; done'
    )
    assert script.splitlines()[0] in " ".join((REPOSITORY / "README.md").read_text(encoding="utf-8").split())
    env = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"}
    argv = ("bash", "-c", script, "bash", *_OFFERED)
    done = subprocess.run(argv, cwd=cwd, env=env, capture_output=True, text=True, check=True)
    return {typed: set(line.split()) for typed, line in zip(_OFFERED, done.stdout.splitlines(), strict=True)}


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "offered"), _OFFERED.items())
def test_the_shell_completes_tasks_and_flags(
    typed: str, offered: set[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert "_complete_tritonsmith" in pages.BASH
    assert _completed(tmp_path_factory.getbasetemp())[typed] == offered


def test_a_tab_runs_nothing_of_what_a_dump_says(elsewhere: Path) -> None:
    """The names of passes come from a file that may be anybody's."""
    script = (
        f"{pages.BASH}\n"
        "tritonsmith() { printf '%s\\n' tritongpu-coalesce '$(touch ran)' '`touch ran`'; }\n"
        'COMP_LINE="tritonsmith passes.show d "; COMP_POINT=${#COMP_LINE}; _complete_tritonsmith\n'
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", script], cwd=elsewhere, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["tritongpu-coalesce", "$(touch ran)", "`touch ran`"]
    assert not (elsewhere / "ran").exists()


def test_a_value_that_a_shell_would_expand_is_not_offered(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(pages, "candidates", lambda _: ["tritongpu-coalesce", "$(touch ran)", "a b", "a;b"])
    pages.main(["--complete", "--", "tritonsmith passes.show d "])
    assert capsys.readouterr().out == "tritongpu-coalesce\n"


@pytest.fixture
def kept(elsewhere: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that completion keeps in a workspace which exists."""
    home = elsewhere / "home"
    files.mark(home)
    monkeypatch.setenv("TRITONSMITH_HOME", str(home))
    return home / pages.FILE


def tab(cwd: Path, line: str) -> tuple[list[str], set[str]]:
    """What a Tab offers, and the packages that were imported for it."""
    code = (
        "import sys; from tritonsmith.cli.start import main; sys.argv[1:] = ['--complete', '--', sys.argv[1]]"
        "; main(); print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        (sys.executable, "-c", code, line), cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines(), set(done.stderr.split())


@pytest.mark.parametrize("line", ["tritonsmith ", "tritonsmith kern", "tritonsmith -"])
def test_names_of_commands_are_offered_without_an_import_of_a_task(
    elsewhere: Path, kept: Path, line: str
) -> None:
    offered, imported = tab(elsewhere, line)
    assert offered
    assert imported.isdisjoint({"invoke", "psutil"})
    assert not kept.exists()


@pytest.mark.slow
@pytest.mark.parametrize("line", ["tritonsmith doctor --", "tritonsmith explain --pipeline --target h"])
def test_a_second_tab_imports_neither_invoke_nor_the_tasks(elsewhere: Path, kept: Path, line: str) -> None:
    first, imported = tab(elsewhere, line)
    assert "invoke" in imported
    assert kept.is_file()
    again, imported = tab(elsewhere, line)
    assert again == first != []
    assert imported.isdisjoint({"invoke", "psutil"})


@pytest.mark.slow
def test_a_tab_after_another_task_keeps_the_flags_of_both(elsewhere: Path, kept: Path) -> None:
    lines = ("tritonsmith doctor --", "tritonsmith pins --")
    before = [offered(line) for line in lines]
    again = [tab(elsewhere, line) for line in lines]
    assert [imported & {"invoke"} for _, imported in again] == [set(), set()]
    assert [texts for texts, _ in again] == before
    assert kept.is_file()


def offered(line: str) -> list[str]:
    """What a Tab offers, in this process."""
    return list(pages.candidates(pages.typed(["--complete", "--", line])))


@pytest.mark.slow
@pytest.mark.parametrize("made", [False, True])
def test_a_tab_writes_nothing_where_no_workspace_is_yet(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: bool
) -> None:
    home = tmp_path / "home"
    if made:
        home.mkdir()
    monkeypatch.setenv("TRITONSMITH_HOME", str(home))
    assert "--deep" in offered("tritonsmith doctor --")
    assert home.exists() == made
    files.mark(home)  # which refuses a folder that holds a file


@pytest.mark.slow
@pytest.mark.parametrize("damage", ["", "[]", '{"state": "of other tasks", "tasks": {"gone": []}}', "\0"])
def test_a_tab_does_not_trust_what_does_not_fit(kept: Path, damage: str) -> None:
    kept.write_text(damage, encoding="utf-8")
    texts = offered("tritonsmith doctor --")
    assert "--deep" in texts
    assert "gone" not in texts
    assert "gone" not in kept.read_text(encoding="utf-8")


def page(cwd: Path, *words: str) -> tuple[str, set[str]]:
    """What a command line prints, and the packages that were imported for it."""
    code = (
        "import sys; from tritonsmith.cli.start import main; sys.argv[:] = ['tritonsmith', *sys.argv[1:]]\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        (sys.executable, "-c", code, *words), cwd=cwd, capture_output=True, text=True, check=True
    )
    return done.stdout, set(done.stderr.split())


@pytest.mark.parametrize("words", [(), ("--list",), ("-l",)])
def test_the_start_page_and_the_list_import_neither_invoke_nor_rich(
    elsewhere: Path, kept: Path, words: tuple[str, ...]
) -> None:
    text, imported = page(elsewhere, *words)
    assert "kernel.compile" in text
    assert imported.isdisjoint({"invoke", "rich", "psutil"})
    assert not kept.exists()


@pytest.mark.parametrize(("words", "root"), [(["--list"], ""), (["--list", "passes"], "passes")])
def test_the_list_is_laid_out_as_invoke_does(
    words: list[str], root: str, capsys: pytest.CaptureFixture[str]
) -> None:
    class Plain(program.SmithProgram):
        list_flat = Program.list_flat

    Plain(name="tritonsmith", namespace=namespace).run(["tritonsmith", *words], exit=False)
    assert capsys.readouterr().out == "".join(f"{line}\n" for line in pages.listing("Subcommands", root))


@pytest.mark.slow
def test_help_for_the_second_time_imports_neither_invoke_nor_rich(elsewhere: Path, kept: Path) -> None:
    first, imported = page(elsewhere, "--help", "doctor")
    assert "invoke" in imported
    again, imported = page(elsewhere, "doctor", "-h")
    assert again == first
    assert imported.isdisjoint({"invoke", "rich", "psutil"})
    assert kept.is_file()


def test_help_is_read_again_after_any_change_of_the_tool(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "src" / "tritonsmith"
    (package / "core").mkdir(parents=True)
    (package / "core" / "some.py").write_text("A = 1\n", encoding="utf-8")
    monkeypatch.setattr(pages, "_PACKAGE", package)
    (package / ".#some.py").symlink_to("somebody@host.1234")  # as Emacs locks a file
    task = pages.Task(("Of the index.",), (), tables=False)
    content = {"state": pages.state_of_tool(), "tasks": {"doctor": task}}
    kept.write_text(json.dumps(content), encoding="utf-8")
    assert pages.task_of("doctor") == task
    file = package / "core" / "some.py"
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    file.write_text("A = 2\n", encoding="utf-8")
    os.utime(file, ns=times)  # as rsync and tar do
    assert pages.task_of("doctor").about[0].startswith("Diagnose")
    (package / "core" / "new.py").touch()
    assert json.loads(kept.read_text(encoding="utf-8"))["state"] != pages.state_of_tool()


def test_help_needs_no_index(kept: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def about() -> str:
        return pages.task_of("doctor").about[0]

    whole = about()
    content = json.loads(kept.read_text(encoding="utf-8"))
    for wrong in ([[], [[1, 2, 3, 4, 5, 6, 7]], False], [["\ud800"], [], False], [[None], [], False]):
        kept.write_text(json.dumps({**content, "tasks": {"doctor": wrong}}), encoding="utf-8")
        assert about() == whole
    kept.unlink()
    with files.replacing(kept):  # another process writes it, and does not end
        assert about() == whole
    kept.unlink()
    (tmp_path / "loop").symlink_to("loop")
    with monkeypatch.context() as patched:
        patched.setattr(pages, "_PACKAGE", tmp_path / "loop")
        assert about() == whole
    monkeypatch.setenv("TRITONSMITH_HOME", "~nobody-of-this-name/x")
    assert about() == whole


@pytest.mark.slow
def test_the_help_of_plain_invoke_is_that_of_the_tool(elsewhere: Path) -> None:
    ours = run(elsewhere, "tritonsmith", "purge-wheels", "--help").stdout
    assert run(REPOSITORY, "invoke", "purge-wheels", "--help").stdout == ours.replace(
        "tritonsmith ", "invoke "
    )
    assert "Usage: tritonsmith purge-wheels [options]\n" in ours
    assert "STRING" not in ours


def test_parsing_a_command_line_imports_no_other_task() -> None:
    smith = program.SmithProgram(namespace=namespace)
    smith.create_config()
    smith.parse_core(["tritonsmith", "doctor"])
    smith.parse_collection()
    assert list(smith._make_parser().contexts) == ["doctor"]


@pytest.mark.slow
def test_the_doctor_imports_no_compiler_where_it_compiles_nothing(elsewhere: Path) -> None:
    code = (
        "import sys; from tritonsmith.cli.start import main; sys.argv[1:] = ['doctor', '--list']\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*(name for name in sys.modules if name.startswith('tritonsmith.')), file=sys.stderr)"
    )
    done = subprocess.run(
        (sys.executable, "-c", code), cwd=elsewhere, capture_output=True, text=True, check=True
    )
    imported = set(done.stderr.split())
    assert "tritonsmith.doctor.run" in imported
    assert not [
        one
        for one in imported
        if one.startswith(("tritonsmith.compiler", "tritonsmith.lab", "tritonsmith.build.store"))
    ]


@pytest.mark.slow
def test_help_explains_the_flags(elsewhere: Path) -> None:
    done = run(elsewhere, "tritonsmith", "--help", "doctor")
    assert done.returncode == 0
    assert "list the checks" in done.stdout


def test_tritonsmith_and_usage(elsewhere: Path) -> None:
    done = run(elsewhere, "tritonsmith", "dctor")
    assert (done.returncode, done.stdout) == (2, "")
    assert "unknown task 'dctor'\n  - did you mean 'doctor'?" in done.stderr


@pytest.mark.slow
def test_invoke_in_the_checkout() -> None:
    done = run(REPOSITORY, "invoke", "--list")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(name in done.stdout for name in namespace.task_names)
    done = run(REPOSITORY, "invoke", "build-triton", "--debug", "--build-type", "Release")
    assert (done.returncode, done.stdout) == (2, "")
    assert "contradict each other" in done.stderr


@pytest.mark.slow
def test_a_failure_that_was_foreseen(elsewhere: Path) -> None:
    (elsewhere / "mine.toml").write_text("[triton]\nwhel = 'x'\n")
    done = run(elsewhere, "tritonsmith", "env.explain", "--env", "mine.toml")
    assert (done.returncode, done.stdout) == (1, "")
    assert "did you mean 'wheel'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_stopped_before_a_task_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["tritonsmith"])
    monkeypatch.setattr(pages, "start_page", lambda: signal.raise_signal(signal.SIGINT))
    with pytest.raises(SystemExit) as caught:
        program.main()
    assert caught.value.code == 130


@pytest.mark.parametrize("program_", ["tritonsmith", "invoke"])
def test_stopped_while_python_imports_the_tool(program_: str, tmp_path: Path) -> None:
    """A stand-in for a module that both import late, and that takes for ever."""
    (tmp_path / "rich").mkdir()
    (tmp_path / "rich" / "__init__.py").write_text(
        "import time\nprint('imports', flush=True)\ntime.sleep(600)\n"
    )
    argv = [sys.executable, str(Path(sys.executable).with_name(program_)), "env"]
    environ = {**os.environ, "PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(argv, cwd=REPOSITORY, env=environ, stdout=-1, stderr=-1, text=True) as started:
        assert started.stdout
        assert started.stderr
        assert started.stdout.readline() == "imports\n"
        started.send_signal(signal.SIGINT)
        assert started.stderr.read() == "interrupted\n"
    assert started.returncode == 130


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_bug(elsewhere: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    argv = (str(BIN / "tritonsmith"), "env.list")
    done = subprocess.run(argv, cwd=elsewhere, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert "Traceback" not in done.stderr
    assert "bug" not in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("argv", [["tritonsmith", "--list"], ["tritonsmith", "--help"], ["invoke", "--list"],
                                  ["tritonsmith", "pins", "--help"], ["tritonsmith", "pins"]])  # fmt: skip
def test_a_reader_that_has_gone_is_no_bug(argv: list[str]) -> None:
    """As `| head`, which a shell tells as 141."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb") as pipe:
        done = subprocess.run(
            (str(BIN / argv[0]), *argv[1:]), cwd=REPOSITORY, stdout=pipe, stderr=subprocess.PIPE, check=False
        )
    assert done.stderr == b""
    assert done.returncode in (141, -signal.SIGPIPE)


@pytest.mark.parametrize(
    "script", sorted((REPOSITORY / "benchmarks").glob("*.py")), ids=lambda path: path.name
)
def test_benchmarks_tell_what_they_want(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [str(script), "--no-such-flag"])
    monkeypatch.syspath_prepend(script.parent)  # as Python does for a script
    with pytest.raises(SystemExit) as caught:
        runpy.run_path(str(script), run_name="__main__")
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("usage: ")


@pytest.mark.skipif(sys.platform != "linux", reason="/proc tells which signals are heard")
@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_signal_while_the_tool_is_imported(number: signal.Signals, elsewhere: Path) -> None:
    """As soon as the entry runs, and before a task can: its code is that of a run that was stopped."""
    argv = (str(BIN / "tritonsmith"), "doctor")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(argv, cwd=elsewhere, **quiet) as process:  # type: ignore[call-overload]
        status = Path(f"/proc/{process.pid}/status")
        while not _heard(status.read_text()) & 1 << number - 1:
            assert process.poll() is None
        process.send_signal(number)
        assert process.wait(60) == EXIT_INTERRUPTED


def _heard(status: str) -> int:
    return next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigCgt"))


def test_a_log_of_a_bug_is_for_who_ran_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRITONSMITH_HOME", str(tmp_path / "home"))
    assert getattr(task.as_exit(LookupError("a bug")), "code", None) == EXIT_BUG
    (log,) = (tmp_path / "home" / "logs").glob("*bug*.log")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600
    assert log.read_text().startswith("tritonsmith ")
