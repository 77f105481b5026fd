"""The pages of help: without a task, tasks by purpose and where to go on; of a task, how to use it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING

from tritonsmith import __version__
from tritonsmith.cli import modes
from tritonsmith.cli.tasks.option_task import WIDE, OptionTask
from tritonsmith.core.ui import console

GROUPS = {
    "environment": (
        "up", "doctor", "env", "pins", "env-triton", "purge-wheels", "cache.list", "clear-cache",
    ),
    "build": (
        "setup-mlir", "build-triton", "install-triton", "link-compile-commands", "debug-library", "watch",
        "test-triton", "run", "worktree",
    ),
    "sources": ("explain", "pass.new", "plugin.check", "editor"),
    "LLVM store": ("store", "store.gc", "store.export", "store.import"),
    "kernels": (
        "kernel.compile", "kernel.show", "kernel.lint", "kernel.profile", "kernel.capture", "kernel.export",
        "kernel.override",
    ),
    "laboratory": ("compare", "bisect", "blame", "triage", "knockout", "reduce"),
    "passes": (
        "passes.dump", "passes.list", "passes.show", "passes.diff", "passes.replay", "passes.check",
        "passes.isolate",
    ),
}  # fmt: skip
# One useful call of each task.
EXAMPLES = {
    "benchmark": "benchmark --name command_line",
    "bisect": "bisect matmul.py --good 3.6.0 --bad 3.9.0 --when 'spills>0'",
    "bisect.log": "bisect --log > log.txt",
    "bisect.resume": "bisect --resume --explain",
    "bisect.skip": "bisect --skip 3.7.1",
    "bisect.status": "bisect --status",
    "blame": "blame matmul.py --target h100 --from 3.6.0 --to 3.9.0 --metric spills",
    "build-triton": "build-triton --debug --for opt",
    "build.explain": "build-triton --explain --env debug",
    "cache.list": "cache.list --older-than 7d",
    "cache.show": "cache.list LQZ6 --root ~/.triton/cache",
    "ci-replay": "test-triton --ci integration-tests-nvidia.yml:Integration-Tests --dry-run",
    "clear-cache": "clear-cache --stale --dry-run",
    "compare": "compare 3.6.0 3.9.0 matmul.py --target h100 --fail-on 'registers>+5%,spills>0'",
    "container": "editor --container --env dev --out .devcontainer",
    "corpus.add": "compare --corpus-add captured.toml",
    "corpus.list": "compare --corpus-list",
    "corpus.remove": "compare --corpus-remove 'matmul*'",
    "debug-library": "debug-library MLIRTransforms,MLIRIR",
    "docs": "docs --serve",
    "doctor": "doctor --env debug --deep",
    "doctor.compare": "doctor --compare laptop.json cluster.json",
    "editor": "editor vscode --pass tritongpu-pipeline",
    "env": "env",
    "env-triton": "env-triton --pytorch 2.9 --env dev",
    "env.allow": "env --allow ./my.toml",
    "env.explain": "env debug",
    "explain": "explain tritongpu-coalesce",
    "install-triton": "install-triton --env debug",
    "ir-env": "passes.dump --print-env nvidia,timing --out dumps",
    "kernel.capture": "kernel.capture --env torch --device h100 --out captured.toml -- python script.py",
    "kernel.compile": (
        "kernel.compile add.py --signature '*fp32:16,*fp32:16,*fp32:16,i32,BLOCK_SIZE=1024' --target h100"
    ),
    "kernel.export": (
        "kernel.export matmul.py --signature '*fp16:16,*fp16:16,i32,BLOCK=128' --grid '(n+BLOCK-1)/BLOCK,1,1'"
    ),
    "kernel.inline-ptx": "kernel.export --as ptx matmul.py --target h100 --header --out matmul.cuh",
    "kernel.lint": "kernel.lint matmul.py --target h100 --fail-on any",
    "kernel.override": "kernel.override matmul.py --stage ttgir --target h100",
    "kernel.profile": "kernel.profile --env torch -- python script.py",
    "kernel.resources": "kernel.compile --resources matmul.py --target all --sweep num_warps=4,8",
    "kernel.show": "kernel.show matmul.py --stage ptx --target h100 --source-lines",
    "kernel.study": "compare kernels.toml --triton 3.2.0,3.6.0,3.9.0 --target h100 --site site",
    "knockout": "knockout matmul.py --target h100",
    "layout": (
        "kernel.show --layout '#ttg.swizzled_shared<{vec=8, perPhase=1, maxPhase=8, order=[1,0]}>' "
        "--shape 64x64"
    ),
    "link-compile-commands": "link-compile-commands --env debug",
    "lint": "lint",
    "pass.new": "pass.new hoist-loads --family ttgpu",
    "passes.check": "passes.check dump",
    "passes.diff": "passes.diff dump tritongpu-coalesce",
    "passes.dump": "passes.dump matmul.py --target h100 --out dump",
    "passes.find": "passes.show dump --find convert_layout",
    "passes.import": "passes.dump --from-log mlir.log --out dump",
    "passes.isolate": "passes.isolate dump --reduce",
    "passes.list": "passes.list dump --changed",
    "passes.reduce": "reduce failing.mlir --pass 'tritongpu-pipeline{num-stages=3}'",
    "passes.replay": "passes.replay dump 18 --gdb",
    "passes.report": "passes.show dump --page --out report.html",
    "passes.run": "passes.replay --env torch --skip-pass tritongpu-pipeline -- python script.py",
    "passes.show": "passes.show dump tritongpu-coalesce --after",
    "pins": "pins --pytorch 2.9",
    "pipeline": "explain --pipeline --target h100,mi300x",
    "plugin.check": "plugin.check build/libhoist_loads.so --wheel 3.9.0",
    "purge-wheels": "purge-wheels --env wheel --dry-run",
    "reduce": "reduce matmul.py --target h100 --when 'spills>0'",
    "rehearse": "compare captured.toml --from 3.6.0 --to 3.9.0",
    "run": "run --env asan -- python script.py",
    "setup-mlir": "setup-mlir --env debug --provider source --dry-run",
    "store": "store",
    "store.adopt": "store.import --in-place /opt/llvm --name mine",
    "store.export": "store.export mine llvm.tar.zst",
    "store.forget": "store --forget mine",
    "store.gc": "store.gc --max-size 50GB --dry-run",
    "store.import": "store.import llvm.tar.zst",
    "store.verify": "store --verify --quick",
    "system.packages": "doctor --packages --need build",
    "test": "test --only unit",
    "test-triton": "test-triton test/TritonGPU --lit",
    "toolchain.ptxas": "up --ptxas 12.9",
    "triage": "triage matmul.py --target h100 --when wrong",
    "up": "up --env torch",
    "watch": "watch --run 'kernel.resources matmul.py --target h100'",
    "worktree": "worktree",
    "worktree.add": "worktree add release/3.6.x",
    "worktree.remove": "worktree remove wt-release-3.6.x",
}  # fmt: skip
_EXAMPLES = {
    "invoke up": "install a released Triton, and try it",
    "invoke build-triton --debug": "build the current checkout",
    "invoke doctor": "diagnose the environment",
}
_WIDTH = 80  # columns
_WIDEST = 110  # columns of a page of help
_FLAGS = 30  # columns of flags, at most; a longer one has a line of its own
_HEAD = max(map(len, GROUPS)) + 4


def lines() -> Iterator[str]:
    """Yield the start page: at most 40 lines of at most 80 columns."""
    yield f"tritonsmith {__version__}: for people who hack on the Triton GPU compiler."
    yield "Builds LLVM/MLIR at the pin and a Debug Triton, compiles kernels for any GPU"
    yield "(none required), records the IR before every pass, diagnoses environments."
    yield ""
    for title, names in GROUPS.items():
        head = f"  {title}".ljust(_HEAD)
        yield from textwrap.wrap(
            "  ".join(names),
            _WIDTH,
            initial_indent=head,
            subsequent_indent=" " * _HEAD,
            break_on_hyphens=False,
        )
    yield ""
    width = max(map(len, map(console.typed, _EXAMPLES)))
    for command, about in _EXAMPLES.items():
        yield f"  {console.typed(command).ljust(width)}  # {about}"
    yield ""
    yield console.typed("invoke --list: what each task does. invoke --help TASK: its flags.")
    yield 'Completion: eval "$(tritonsmith --print-completion-script=bash)"  # zsh, fish'


def help_of(task: OptionTask) -> Iterator[str]:
    """Yield the help of a task: usage, purpose, an example, its flags with their defaults, its modes.

    Args:
        task: of the namespace.
    """
    words = [option for option in task.options if option.word]
    flags = [option for option in (*task.options, *([WIDE] if task.tables else ())) if not option.word]
    example = EXAMPLES[task.typed]
    takes = " -- COMMAND" if " -- " in example else ""
    yield f"Usage: {console.typed(f'invoke {usage(task)}')} [options]{takes}"
    yield ""
    yield from (f"  {line}" if line else "" for line in (task.__doc__ or "").splitlines())
    yield ""
    yield "Example:"
    yield f"  {console.typed(f'invoke {example}')}"
    for title, options in (("Arguments", words), ("Options", flags)):
        yield from _section(title, [(option.usage, option.help) for option in options])
    yield from _section("Modes, each with options of its own", list(_modes(task.typed)))


def usage(task: OptionTask) -> str:
    """Return how a task is typed, with its words: `passes.show DIR --find TEXT` for the task passes.find."""
    if mode := modes.of_task(task.typed):
        return mode.usage
    words = (option for option in task.options if option.word)
    return " ".join(
        (task.typed, *(word.usage if word.default is MISSING else f"[{word.usage}]" for word in words))
    )


def _modes(command: str) -> Iterator[tuple[str, str]]:
    """Yield the modes of a command: its usage, and the first line of its help."""
    from tritonsmith.cli.tasks import namespace

    for mode in modes.of_command(command):
        yield mode.usage, (namespace.every[mode.task].__doc__ or "").partition("\n")[0]


def _section(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    if rows:
        yield ""
        yield f"{title}:"
        width = min(_FLAGS, max(len(usage) for usage, _ in rows)) + 4
        for usage, about in rows:
            yield from _described(usage, about, width)


def _described(usage: str, about: str, width: int) -> Iterator[str]:
    head = f"  {usage}"
    lines = textwrap.wrap(about, _columns() - width, break_on_hyphens=False, break_long_words=False)
    if len(head) > width - 2:
        yield head
        head = ""
    for line in lines:
        yield f"{head.ljust(width)}{line}"
        head = ""


def _columns() -> int:
    try:
        return min(
            _WIDEST, max(_WIDTH // 2, int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns))
        )
    except (OSError, ValueError):
        return console.PIPE_WIDTH
