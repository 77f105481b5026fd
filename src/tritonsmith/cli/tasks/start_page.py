"""The pages of help: the start page, with the tasks by purpose, and the help of one task."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator
from dataclasses import MISSING

from tritonsmith import __version__
from tritonsmith.cli import commands, modes
from tritonsmith.cli.tasks.option_fields import WIDE, OptionTask
from tritonsmith.core.ui import console

_EXAMPLES = {
    "invoke up": "install a released Triton, and try it",
    "invoke build-triton --debug": "build the current checkout",
    "invoke doctor": "diagnose the environment",
}
_WIDTH = 80  # columns
_WIDEST = 110  # columns of a page of help
_FLAGS = 30  # columns of flags, at most; a longer one has a line of its own
_HEAD = max(map(len, commands.GROUPS)) + 4


def lines() -> Iterator[str]:
    """Yield the start page: at most 40 lines of at most 80 columns."""
    yield f"tritonsmith {__version__}: for people who hack on the Triton GPU compiler."
    yield "Builds LLVM/MLIR at the pin and a Debug Triton, compiles kernels for any GPU"
    yield "(none required), records the IR before every pass, diagnoses environments."
    yield ""
    for title, names in commands.GROUPS.items():
        head = f"  {title}".ljust(_HEAD)
        # `env-triton` must not be broken at its hyphen: names are copied from here.
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
    example = commands.EVERY[task.typed].example
    # Invoke's parser knows nothing of a command after `--`, so the example has to say that the task takes
    # one.
    takes = " -- COMMAND" if " -- " in example else ""
    yield f"Usage: {console.typed(f'invoke {usage(task)}')} [options]{takes}"
    yield ""
    yield from (f"  {line}" if line else "" for line in (task.__doc__ or "").splitlines())
    yield ""
    yield "Example:"
    yield f"  {console.typed(f'invoke {example}')}"
    for title, options in (("Arguments", words), ("Options", flags)):
        yield from _section(title, [(option.usage, option.help) for option in options])
    yield from _section("Modes, each with its own options", list(_modes(task.typed)))


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
    for mode in modes.of_command(command):
        yield mode.usage, commands.EVERY[mode.task].purpose


def _section(title: str, rows: list[tuple[str, str]]) -> Iterator[str]:
    if rows:
        yield ""
        yield f"{title}:"
        width = min(_FLAGS, max(len(usage) for usage, _ in rows)) + 4
        for usage, about in rows:
            yield from _described(usage, about, width)


def _described(usage: str, about: str, width: int) -> Iterator[str]:
    # A usage that is wider than its column has a line of its own, as in the help of most programs.
    head = f"  {usage}"
    lines = textwrap.wrap(about, _columns() - width, break_on_hyphens=False, break_long_words=False)
    if len(head) > width - 2:
        yield head
        head = ""
    for line in lines:
        yield f"{head.ljust(width)}{line}"
        head = ""


def _columns() -> int:
    # COLUMNS comes first, so that a script and a test choose the width; of a pipe, the size cannot be asked.
    try:
        return min(
            _WIDEST, max(_WIDTH // 2, int(os.environ.get("COLUMNS") or os.get_terminal_size(1).columns))
        )
    except (OSError, ValueError):
        return console.PIPE_WIDTH
