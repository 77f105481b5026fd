"""The page that `tritonsmith` prints without a task: tasks by purpose, examples, and where to find help."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator

from tritonsmith import __version__
from tritonsmith.ui import console

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
    "caches, wheels": ("cache.list", "clear-cache", "env-triton", "purge-wheels"),
    "this project": ("test", "lint", "benchmark"),
}  # fmt: skip
_EXAMPLES = {
    "invoke up": "install a released Triton, and try it",
    "invoke build-triton --debug": "build the current checkout",
    "invoke doctor": "diagnose the environment",
}
_WIDTH = 80  # columns
_HEAD = max(map(len, GROUPS)) + 4


def lines() -> Iterator[str]:
    """The page, at most 40 lines of at most 80 columns."""
    yield f"tritonsmith {__version__}: for people who hack on the Triton GPU compiler."
    yield "LLVM/MLIR at the pin, a Debug Triton with that LLVM, kernels compiled for any"
    yield "GPU without one, the IR before every pass, and a diagnosis of the environment."
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
