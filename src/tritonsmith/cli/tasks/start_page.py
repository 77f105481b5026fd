"""The pages of help: without a task, tasks by purpose and where to go on; of a task, how to use it."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING

from tritonsmith import __version__
from tritonsmith.cli.tasks.option_task import WIDE, OptionTask
from tritonsmith.core.ui import console

GROUPS = {
    "set up": (
        "up", "setup-mlir", "toolchain.ptxas", "system.packages", "env.list", "env.explain", "env.allow",
    ),
    "build": (
        "build-triton", "install-triton", "link-compile-commands", "build.explain", "debug-library", "watch",
        "test-triton", "ci-replay",
    ),
    "sources": ("explain", "pass.new", "plugin.check", "editor", "container"),
    "worktrees": ("worktree.add", "worktree.list", "worktree.remove"),
    "diagnose": ("doctor.run", "doctor.compare", "pins", "triage", "run"),
    "kernels": (
        "kernel.compile", "kernel.show", "kernel.resources", "kernel.compare", "kernel.study", "kernel.aot",
        "kernel.inline-ptx", "kernel.capture", "kernel.lint", "kernel.profile", "kernel.reduce",
        "layout",
    ),
    "upgrades": ("rehearse", "blame", "corpus.add", "corpus.list", "corpus.remove"),
    "bisect": ("bisect.run", "bisect.resume", "bisect.status", "bisect.log", "bisect.skip"),
    "passes": (
        "passes.dump", "passes.import", "passes.list", "passes.show", "passes.diff", "passes.find",
        "passes.check", "passes.replay", "passes.run", "passes.knockout", "passes.isolate", "passes.reduce",
        "passes.report", "pipeline", "ir-env", "ir-override",
    ),
    "LLVM store": (
        "store.list", "store.gc", "store.export", "store.import", "store.adopt", "store.forget",
        "store.verify",
    ),
    "caches, wheels": ("cache.list", "cache.show", "clear-cache", "env-triton", "purge-wheels"),
    "this project": ("test", "lint", "benchmark"),
}  # fmt: skip
# The arguments of one useful call of each task.
EXAMPLES = {
    "benchmark": "--name command_line",
    "bisect.log": "> log.txt",
    "bisect.resume": "--explain",
    "bisect.run": "matmul.py --good 3.6.0 --bad 3.9.0 --when 'spills>0'",
    "bisect.skip": "3.7.1",
    "bisect.status": "",
    "blame": "matmul.py --target h100 --from 3.6.0 --to 3.9.0 --metric spills",
    "build-triton": "--debug --for opt",
    "build.explain": "--env debug",
    "cache.list": "--older-than 7d",
    "cache.show": "LQZ6 --root ~/.triton/cache",
    "ci-replay": "integration-tests-nvidia.yml:Integration-Tests --dry-run",
    "clear-cache": "--stale --dry-run",
    "container": "--env dev --out .devcontainer",
    "corpus.add": "captured.toml",
    "corpus.list": "",
    "corpus.remove": "'matmul*'",
    "debug-library": "MLIRTransforms,MLIRIR",
    "doctor.compare": "laptop.json cluster.json",
    "doctor.run": "--env debug --deep",
    "editor": "vscode --pass tritongpu-pipeline",
    "env-triton": "--pytorch 2.9 --env dev",
    "env.allow": "./my.toml",
    "env.explain": "--env debug",
    "env.list": "",
    "explain": "tritongpu-coalesce",
    "install-triton": "--env debug",
    "ir-env": "nvidia,timing --out dumps",
    "ir-override": "matmul.py --stage ttgir --target h100",
    "kernel.aot": "matmul.py --signature '*fp16:16,*fp16:16,i32,BLOCK=128' --grid '(n+BLOCK-1)/BLOCK,1,1'",
    "kernel.capture": "--env torch --device h100 --out captured.toml -- python script.py",
    "kernel.compare": "3.6.0 3.9.0 matmul.py --target h100 --fail-on 'registers>+5%,spills>0'",
    "kernel.compile": "add.py --signature '*fp32:16,*fp32:16,*fp32:16,i32,BLOCK_SIZE=1024' --target h100",
    "kernel.inline-ptx": "matmul.py --target h100 --header --out matmul.cuh",
    "kernel.lint": "matmul.py --target h100 --fail-on any",
    "kernel.profile": "--env torch -- python script.py",
    "kernel.reduce": "matmul.py --target h100 --when 'spills>0'",
    "kernel.resources": "matmul.py --target all --sweep num_warps=4,8",
    "kernel.show": "matmul.py --stage ptx --target h100 --source-lines",
    "kernel.study": "kernels.toml --triton 3.2.0,3.6.0,3.9.0 --target h100 --site site",
    "layout": "'#ttg.swizzled_shared<{vec=8, perPhase=1, maxPhase=8, order=[1,0]}>' --shape 64x64",
    "link-compile-commands": "--env debug",
    "lint": "",
    "pass.new": "hoist-loads --family ttgpu",
    "passes.check": "dump",
    "passes.diff": "dump tritongpu-coalesce",
    "passes.dump": "matmul.py --target h100 --out dump",
    "passes.find": "dump convert_layout",
    "passes.import": "mlir.log --out dump",
    "passes.isolate": "dump --reduce",
    "passes.knockout": "matmul.py --target h100",
    "passes.list": "dump --changed",
    "passes.reduce": "failing.mlir --pass 'tritongpu-pipeline{num-stages=3}'",
    "passes.replay": "dump 18 --gdb",
    "passes.report": "dump --out report.html",
    "passes.run": "--env torch --skip-pass tritongpu-pipeline -- python script.py",
    "passes.show": "dump tritongpu-coalesce --after",
    "pins": "--pytorch 2.9",
    "pipeline": "--target h100,mi300x",
    "plugin.check": "build/libhoist_loads.so --wheel 3.9.0",
    "purge-wheels": "--env wheel --dry-run",
    "rehearse": "captured.toml --from 3.6.0 --to 3.9.0",
    "run": "--env asan -- python script.py",
    "setup-mlir": "--env debug --provider source --dry-run",
    "store.adopt": "/opt/llvm --name mine",
    "store.export": "mine llvm.tar.zst",
    "store.forget": "mine",
    "store.gc": "--max-size 50GB --dry-run",
    "store.import": "llvm.tar.zst",
    "store.list": "",
    "store.verify": "--quick",
    "system.packages": "--need build",
    "test": "--only unit",
    "test-triton": "test/TritonGPU --lit",
    "toolchain.ptxas": "12.9",
    "triage": "matmul.py --target h100 --when wrong",
    "up": "--env torch",
    "watch": "--run 'kernel.resources matmul.py --target h100'",
    "worktree.add": "release/3.6.x",
    "worktree.list": "",
    "worktree.remove": "wt-release-3.6.x",
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
    """The page, at most 40 lines of at most 80 columns."""
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
    yield "Aliases: bisect cache.clear doctor env.install-triton passes.env passes.override"
    yield 'Completion: eval "$(tritonsmith --print-completion-script=bash)"  # zsh, fish'


def help_of(name: str, task: OptionTask, example: str) -> Iterator[str]:
    """The help of a task: usage, what it does, an example, and its flags with what holds without them.

    Args:
        name: as it was typed; an alias, maybe.
        task: the task.
        example: the arguments of a useful call.
    """
    words = [one for one in task.options if one.word]
    flags = [one for one in (*task.options, *([WIDE] if task.tables else ())) if not one.word]
    usage = " ".join(one.usage if one.default is MISSING else f"[{one.usage}]" for one in words)
    takes = " -- COMMAND" if " -- " in example else ""
    yield f"Usage: {console.typed(f'invoke {name}')} {usage}{' ' if usage else ''}[options]{takes}"
    yield ""
    yield from (f"  {line}" if line else "" for line in (task.__doc__ or "").splitlines())
    yield ""
    yield "Example:"
    yield f"  {console.typed(f'invoke {name} {example}').rstrip()}"
    for title, options in (("Arguments", words), ("Options", flags)):
        if options:
            yield ""
            yield f"{title}:"
            width = min(_FLAGS, max(len(one.usage) for one in options)) + 4
            for one in options:
                yield from _described(one.usage, one.help, width)


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
