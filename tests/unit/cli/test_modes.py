from __future__ import annotations

import shlex

import pytest

from tests.unit.cli.tasks.conftest import Smith, smith
from tritonsmith.cli import commands, modes
from tritonsmith.cli.tasks import namespace

__all__ = ["smith"]

# Every name that a command had before commands had modes.
_BEFORE = [
    "bisect", "bisect.log", "bisect.resume", "bisect.run", "bisect.skip", "bisect.status", "blame",
    "build-triton", "build.explain", "cache.clear", "cache.list", "cache.show", "ci-replay", "clear-cache",
    "container", "corpus.add", "corpus.list", "corpus.remove", "debug-library", "doctor", "doctor.compare",
    "doctor.run", "editor", "env-triton", "env.allow", "env.explain", "env.install-triton", "env.list",
    "explain", "install-triton", "ir-env", "ir-override", "kernel.aot", "kernel.capture", "kernel.compare",
    "kernel.compile", "kernel.inline-ptx", "kernel.lint", "kernel.profile", "kernel.reduce",
    "kernel.resources", "kernel.show", "kernel.study", "layout", "link-compile-commands", "pass.new",
    "passes.check", "passes.diff", "passes.dump", "passes.env", "passes.find", "passes.import",
    "passes.isolate", "passes.knockout", "passes.list", "passes.override", "passes.reduce", "passes.replay",
    "passes.report", "passes.run", "passes.show", "pins", "pipeline", "plugin.check", "purge-wheels",
    "rehearse", "run", "setup-mlir", "store.adopt", "store.export", "store.forget", "store.gc",
    "store.import", "store.list", "store.verify", "system.packages", "test-triton", "toolchain.ptxas",
    "triage", "up", "watch", "worktree.add", "worktree.list", "worktree.remove", "test", "lint", "benchmark",
]  # fmt: skip


@pytest.mark.parametrize("name", _BEFORE)
def test_an_old_name_still_works_and_says_the_new_one_once(smith: Smith, name: str) -> None:
    task = namespace.every[modes.RENAMED.get(name, name)]
    mode = modes.of_task(task.typed)
    typed = mode.usage if mode else task.typed
    answer = smith(name, "--help")
    assert answer.code == 0
    assert answer.out.startswith(f"Usage: invoke {typed}")
    assert answer.err == (f"note: {name} is now: invoke {typed}\n" if typed != name else "")
    assert smith("--help", name).out == answer.out


@pytest.mark.parametrize(
    ("typed", "resolved"),
    [
        ("doctor --compare a b --json", "doctor.compare a b --json"),
        ("doctor --compare=a b", "doctor.compare a b"),
        ("doctor --env compare", "doctor --env compare"),
        ("doctor.run --env x", "doctor --env x"),
        ("compare --corpus-make", "corpus.make"),
        ("compare --corpus-make r.toml --record", "corpus.make r.toml --record"),
        ("compare --corpus-list --json", "corpus.list --json"),
        ("env", "env"),
        ("env debug --json", "env.explain --env debug --json"),
        ("env --env debug", "env.explain --env debug"),
        ("env --json", "env --json"),
        ("env --allow x.toml", "env.allow x.toml"),
        ("worktree", "worktree"),
        ("worktree add v3.6.0 --dry-run", "worktree.add v3.6.0 --dry-run"),
        ("worktree --json", "worktree --json"),
        ("kernel.export a.py --as ptx --header", "kernel.inline-ptx a.py --header"),
        ("kernel.export --as=ptx a.py", "kernel.inline-ptx a.py"),
        ("kernel.export a.py --as c --grid 1", "kernel.export a.py --grid 1"),
        ("passes.show dump --find x", "passes.find dump --text x"),
        ("passes.show --find=x dump", "passes.find --text x dump"),
        ("passes.show dump coalesce", "passes.show dump coalesce"),
        ("compare 3.6.0 3.9.0 a.py", "compare 3.6.0 3.9.0 a.py"),
        ("compare k.toml --triton 3.6.0,3.9.0", "kernel.study k.toml --triton 3.6.0,3.9.0"),
        ("compare k.toml --from a --to b", "rehearse k.toml --from a --to b"),
        ("reduce a.py --when wrong", "reduce a.py --when wrong"),
        ("reduce dump/1.mlir --pass p", "passes.reduce dump/1.mlir --pass p"),
        ("reduce / --own", "passes.reduce / --own"),
        ("reduce failing --pass p", "passes.reduce failing --pass p"),
        ("passes.replay dump 3", "passes.replay dump 3"),
        ("passes.replay --skip-pass p -- python x.py", "passes.run --skip-pass p -- python x.py"),
        ("passes.dump -- python x.py --print-env", "passes.dump -- python x.py --print-env"),
        ("bisect --skip 3.7.1 abc", "bisect.skip 3.7.1 abc"),
        ("store --import a.tar.zst --force", "store.import a.tar.zst --force"),
        ("store.import a.tar.zst", "store.import a.tar.zst"),
        ("store --adopt /opt/llvm", "store.adopt /opt/llvm"),
        ("store.import --in-place /opt/llvm", "store.adopt /opt/llvm"),
        ("setup-mlir build-triton --explain", "setup-mlir build.explain"),
        ("build-triton --explain doctor --json", "build.explain doctor --json"),
        ("--dry", "--dry"),
        ("", ""),
    ],
)
def test_a_mode_is_carried_out_by_its_task(typed: str, resolved: str) -> None:
    assert modes.resolved(typed.split()) == resolved.split()


def test_the_modes_of_a_command_are_told_apart_from_its_own_flags() -> None:
    """A flag that selects a mode would hide one of the command's own."""
    for mode in modes.MODES:
        flags = {option.flag for option in namespace.every[mode.command].options if not option.word}
        assert mode.by.partition(" ")[0] not in flags, mode.usage
        assert not mode.becomes or mode.becomes in {
            option.flag for option in namespace.every[mode.task].options
        }


@pytest.mark.parametrize("mode", modes.MODES, ids=lambda mode: mode.usage)
def test_help_of_a_command_names_its_modes_whose_usage_selects_them(smith: Smith, mode: modes.Mode) -> None:
    line = [word.strip("[]") for word in shlex.split(mode.usage)]
    assert modes.resolved(line)[0] == (mode.task if mode.by != "--" else mode.command)
    listed = modes.of_task(mode.task)
    assert listed is None or listed.usage in smith("--help", mode.command).out
    assert modes.resolved(shlex.split(commands.EVERY[mode.task].example))[0] == mode.task


def test_a_wrong_flag_of_a_mode_is_explained_by_how_the_mode_is_typed(smith: Smith) -> None:
    answer = smith("doctor", "--compare", "a", "b", "--nothing")
    assert answer.code == 2
    assert "its options: invoke doctor --compare --help" in answer.err
    answer = smith("worktree", "add")
    assert "worktree add needs REF" in answer.err
    assert smith("worktree", "add", "--help").out.startswith("Usage: invoke worktree add REF")
