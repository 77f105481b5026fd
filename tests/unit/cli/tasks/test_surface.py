"""What each task prints and how it ends, in this process; builds are for tests/integration."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.cli.tasks.conftest import Smith
from tests.unit.facts import fakes
from tritonsmith.cli import modes
from tritonsmith.cli.tasks import namespace, output
from tritonsmith.cli.tasks.option_fields import from_argv
from tritonsmith.core.envs import workspace
from tritonsmith.core.plan import MakeDir, Plan, Write


@pytest.mark.parametrize("name", sorted(namespace.every))
def test_every_flag_is_explained(name: str) -> None:
    task = namespace[name]
    assert task.__doc__
    assert task.__doc__.splitlines()[0].endswith(".")
    for argument in task.get_arguments():
        assert argument.help
        assert all(len(flag) > 1 for flag in argument.names)


@pytest.mark.parametrize(
    ("argv", "says"),
    [
        (["doctor", "--env", "devv"], "did you mean 'dev'?"),
        (["up", "--env", "dev"], "`up` installs a released wheel"),
        (
            ["build-triton", "--debug", "--build-type", "Release"],
            "--debug and --build-type Release contradict",
        ),
        (["build-triton", "--proton", "--no-proton"], "--proton and --no-proton contradict each other"),
        (["setup-mlir", "--assertions", "--no-assertions"], "--assertions and --no-assertions contradict"),
        (["setup-mlir", "--provider", "soruce"], "did you mean 'source'?"),
        (["setup-mlir", "--jobs", "many"], "--jobs cannot be 'many'"),
        (["build-triton", "--build-type", "Dbg"], "did you mean 'Debug'?"),
        (["doctor", "--packages", "--need", "biuld"], "did you mean 'build'?"),
        (["doctor", "--packages", "--manager", "atp"], "did you mean 'apt'?"),
        (["doctor", "--only", "tools.cmaek"], "did you mean 'tools.cmake'?"),
        (["doctor", "--only", "machine,buidls"], "did you mean 'builds'?"),
        (["doctor", "--only", "machnie", "--list"], "did you mean 'machine'?"),
        (["doctor", "--python", "/no/such/python"], "no such interpreter"),
        (["doctor", "--fix", "--json"], "use one at a time"),
        (["doctor", "--fix", "--report"], "use one at a time"),
        (["doctor", "--jsn"], "did you mean '--json'?"),
        (["dctor"], "did you mean 'doctor'?"),
        (["doctor", "dctor"], "did you mean 'doctor'?"),
        (["doctor", "--env"], "--env needs a value: --env ENV"),
        (["--no-such-core-flag"], "unknown flag --no-such-core-flag"),
        (
            ["kernel.compile", "k.py", "--signatur", "x"],
            "unknown flag --signatur\n  - did you mean '--signature'?",
        ),
        (["kernel.compile", "--signatur", "x"], "unknown flag --signatur\n"),
        (["pins", "debug"], "pins does not take the argument 'debug'"),
        (["explain", "--pipeline", "a100"], "did you mean --target a100?"),
        (["setup-mlir", "/"], "did you mean --source /?"),
        (["test-triton", "--ci", "--source", "/"], "cd DIR, or --env ENV"),
        (["passes.dump", "--print-env", "--target", "a100"], "--target is a flag of"),
        (["reduce", "dump.mlir", "--pattern", "x"], "--pattern is a flag of passes.isolate\n"),
        (["passes.diff"], "passes.diff needs DIR\n"),
        (["up", "--dry"], "did you mean '--dry-run'?"),
        (["pins", "--list"], "unknown flag --list\n"),
        (["farm", "k.toml", "--export", "out"], "does not take the argument 'out'\n  - DEST is 'k.toml'\n"),
        (["farm", "--export", "a", "--import", "b"], "farm --export and --import cannot be combined\n"),
    ],
)
def test_usage_errors(smith: Smith, argv: list[str], says: str) -> None:
    answer = smith(*argv)
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.startswith("error: ")
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert not workspace.default().root.exists()


def test_a_list_of_all_tasks_is_no_answer_to_a_wrong_one(smith: Smith) -> None:
    assert "known names" not in smith("dctor").err
    assert "known names" not in smith("zzzzzzzz").err
    assert "all tasks: invoke --list" in smith("zzzzzzzz").err


@pytest.mark.parametrize("name", sorted(namespace.every))
def test_help_has_a_usage_an_example_that_works_and_placeholders(smith: Smith, name: str) -> None:
    shown = smith("--help", name).out
    usage, *rest = shown.splitlines()
    mode = modes.of_task(name)
    assert usage.startswith(f"Usage: invoke {mode.usage if mode else name} ")
    example = modes.resolved(shlex.split(rest[rest.index("Example:") + 1].strip().removeprefix("invoke")))
    assert example[0] == name
    words = example[1 : example.index("--") if "--" in example else None]
    from_argv(namespace[name], [word for word in words if word not in (">", "log.txt")])
    for option in namespace[name].options:
        assert option.usage in (usage if option.word and not mode else shown)
        assert option.word or not option.placeholder or f"{option.flag} {option.placeholder}" in shown
        assert bool(option.placeholder) == (not option.kind.startswith("bool"))


@pytest.mark.parametrize(
    "words",
    [
        ["kernel.show", "mm.py:mm"],
        ["passes.list", "dump"],
        ["explain", "doctor"],
        ["compare", "3.4.0"],
    ],
)
def test_help_may_follow_the_words_of_a_task(smith: Smith, words: list[str]) -> None:
    assert smith(*words, "--help").out == smith("--help", words[0]).out


def test_explain_needs_sources(smith: Smith, tmp_path: Path) -> None:
    """An empty folder had an answer from MLIR alone, and so had a clone whose first fetch failed."""
    answer = smith("explain", "coalesce", "--source", str(tmp_path))
    assert (answer.code, answer.out) == (1, "")
    assert "no sources of Triton in this folder" in answer.err
    url = "https://example.invalid/triton"
    (workspace.default().sources / "triton-dev" / ".git").mkdir(parents=True)
    answer = smith("explain", "coalesce", "--source", url)
    assert (answer.code, answer.out) == (1, "")
    assert "no checkout of Triton here" in answer.err


def test_help_says_what_holds_without_a_flag(smith: Smith) -> None:
    shown = " ".join(smith("--help", "kernel.compile").out.split())
    assert "--jobs N parallel jobs" in shown
    assert "--target GPU target" in shown
    assert "--env ENV environment name or env file (default: wheel)" in shown
    assert "(default: the Python on PATH)" in " ".join(smith("--help", "kernel.capture").out.split())


def test_help_fits_a_narrow_terminal(smith: Smith, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "64")
    assert max(map(len, smith("--help", "setup-mlir").out.splitlines())) <= 64


def test_a_foreseen_failure(smith: Smith, home: Path) -> None:
    (home / "settings.toml").write_text("[tritn]\n")
    answer = smith("env.explain")
    assert answer.code == 1
    assert "did you mean 'triton'?" in answer.err


def test_consent_as_json(smith: Smith, tmp_path: Path) -> None:
    file = tmp_path / "tree" / "mine.toml"
    (file.parent / ".git").mkdir(parents=True)
    for text, allowed in (("", {}), ('[llvm]\ndir = "/opt/llvm"\n', {"llvm.dir": "/opt/llvm"})):
        file.write_text(text, encoding="utf-8")
        answer = smith("env.allow", str(file), "--json")
        assert json.loads(answer.out) == {"schema": 1, "file": str(file), "allowed": allowed}
    assert smith("env.explain", "--env", str(file)).code == 0


@pytest.mark.parametrize("argv", [["--version"], ["--list"], ["--help"], []])
def test_what_every_program_answers(smith: Smith, argv: list[str]) -> None:
    answer = smith(*argv)
    assert answer.code == 0
    assert answer.err == ""
    wanted = ["tritonsmith 0"] if argv == ["--version"] else ["tritonsmith"] if argv == ["--help"] else []
    wanted = sorted(namespace.task_names) if argv in (["--list"], []) else wanted
    assert all(name in answer.out for name in wanted)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["kernel.compile", "kernel.export", "compare", "debug-library"])
def test_help_is_no_value_of_a_positional_argument(name: str) -> None:
    argv = [str(Path(sys.executable).with_name("tritonsmith")), name, "--help"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(f"Usage: tritonsmith {name} ")


def test_env_list(smith: Smith, home: Path) -> None:
    (home / "envs").mkdir()
    (home / "envs" / "mine.toml").write_text("# for [me]\n")
    answer = smith("env.list")
    assert answer.code == 0
    assert "for [me]" in answer.out
    assert "wheel" in answer.out


def test_env_explain(smith: Smith, home: Path) -> None:
    (home / "settings.toml").write_text('[triton]\ncmake-args = ["-DX=[/x]"]\n')
    answer = smith("env.explain", "--env", "release")
    assert answer.code == 0
    assert "-DX=[/x]" in answer.out.replace("\n", "")
    assert "llvm.assertions" in answer.out
    assert "default" in answer.out


def test_json_of_what_is_chosen(smith: Smith) -> None:
    listed = json.loads(smith("env.list", "--json").out)["environments"]
    assert {"wheel", "torch", "dev"} <= {one["name"] for one in listed}
    settled = json.loads(smith("env.explain", "--env", "torch", "--json").out)["settings"]
    assert settled["python.torch"]["value"] == "cpu"
    assert "clang-19" in json.loads(smith("system.packages", "--json").out)["packages"]


def test_system_packages(smith: Smith) -> None:
    answer = smith("system.packages", "--llvm", "20")
    assert answer.code == 0
    assert "clang-20" in answer.out.split()
    assert answer.out.count("\n") == 1


def test_up_dry_run_prints_a_script_and_does_nothing(smith: Smith) -> None:
    answer = smith("up", "--dry-run")
    assert answer.code == 0
    assert answer.out.startswith("#!/bin/sh\n")
    assert subprocess.run(("/bin/sh", "-n"), input=answer.out, text=True, check=False).returncode == 0
    assert not workspace.default().root.exists()


def test_a_plan_is_printed_to_the_letter(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\ttab :100: [bold] \\[x] \x1b[31m " + "long " * 100 + "\n"
    what = Plan("x", (Write(Path("/x"), text, phase="p"),))
    output.plan(what)
    assert capsys.readouterr().out == what.shell()


def test_a_plan_is_printed_with_names_that_are_no_utf_8(
    capsysbinary: pytest.CaptureFixture[bytes],
) -> None:
    output.plan(Plan("x", (MakeDir(Path(os.fsdecode(b"/caf\xe9")), phase="p"),)))
    assert b"mkdir -p '/caf\xe9'\n" in capsysbinary.readouterr().out


def test_link_before_anything_was_built(
    smith: Smith, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = fakes.checkout(tmp_path / "triton", "3.5")
    monkeypatch.chdir(source / "third_party")
    answer = smith("link-compile-commands")
    assert answer.code == 1
    assert "run `invoke build-triton` first" in answer.err
    assert not workspace.default().root.exists()


def test_build_triton_before_setup_mlir(smith: Smith, tmp_path: Path) -> None:
    source = fakes.checkout(tmp_path / "triton", "3.5")
    answer = smith("build-triton", "--source", str(source), "--dry-run")
    assert answer.code == 0
    assert "the rest depends on the LLVM: `invoke setup-mlir" in answer.err
    assert "cmake" not in answer.out


def test_a_source_that_is_no_checkout(smith: Smith, tmp_path: Path) -> None:
    answer = smith("build-triton", "--source", str(tmp_path), "--dry-run")
    assert answer.code == 1
    assert "not a checkout of Triton" in answer.err
