"""`tritonsmith TASK`: the same tasks as `invoke TASK`, from any folder, and the pages of help."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from invoke.exceptions import Exit, ParseError
from invoke.parser import Parser
from invoke.program import Program

from tritonsmith import __version__
from tritonsmith.cli import modes, pages
from tritonsmith.cli.tasks import namespace
from tritonsmith.cli.tasks.option_fields import WIDE, command_line
from tritonsmith.cli.tasks.task import end_at_closed_pipe
from tritonsmith.core import redact, untrusted
from tritonsmith.core.errors import EXIT_INTERRUPTED, EXIT_USAGE, nearest
from tritonsmith.core.ui import console

_FEW = 4  # tasks that a hint names


class SmithProgram(Program):
    """Invoke's program with this project's help, completion, exit code and hints for a wrong command line."""

    def _make_parser(self) -> Parser:
        # `--help passes.dump` has the task in the value of Invoke's flag, not among the words.
        words = [
            *self.core.unparsed,
            *([self.args.help.value] if isinstance(self.args.help.value, str) else []),
        ]
        return Parser(initial=self.initial_context, contexts=namespace.contexts_of(words))

    def parse_core(self, argv: list[str] | None) -> None:
        """Parse the options before the tasks; see `invoke.Program`."""
        with _usage_errors():
            super().parse_core(argv)
        # Invoke turns bytecode off, and so every run would compile every import: before the modules of tasks.
        sys.dont_write_bytecode = bool(sys.flags.dont_write_bytecode)

    def parse_core_args(self) -> None:
        """Parse core options, and print the completion of Bash; see `invoke.Program`."""
        super().parse_core_args()
        if self.args["print-completion-script"].value == "bash":
            console.write(pages.BASH)
            raise Exit

    def parse_tasks(self) -> None:
        """Parse the tasks and their flags; see `invoke.Program`."""
        if self.args.complete.value:
            # Instead of Invoke's own completion, which offers neither values of flags nor modes.
            pages.main(sys.argv[1:])
            raise Exit
        for old, usage in modes.old_names(self.core.unparsed):
            console.note(f"{old} is now: invoke {usage}")
        # Invoke has put aside `--` and what follows, and a mode may be selected by its presence.
        rest = ["--"] if "--" in self.argv else []
        line = modes.resolved([*self.core.unparsed, *rest])
        self.core.unparsed = line[: len(line) - len(rest)]
        with _usage_errors():
            super().parse_tasks()
            # Invoke takes its own flags after a task, too: `up --dry` would install, as `--dry` is Invoke's
            # and `--dry-run` is ours, and `pins --list` would list all tasks.
            for flag in self.core_via_tasks.args.values():
                if flag.name != "help" and flag.value != flag.default:
                    raise ParseError(f"No idea what '--{flag.name}' is!", self.tasks[-1])

    def print_task_help(self, name: str) -> None:
        """Print the help of a task; see `invoke.Program`."""
        for line in pages.help_of(modes.RENAMED.get(name, name)):
            console.write(line)

    def list_flat(self) -> None:
        """Print the list of commands; see `invoke.Program`."""
        for line in pages.listing(self.task_list_opener(), self.list_root or ""):
            console.write(line)

    def no_tasks_given(self) -> None:
        """Print the start page instead of Invoke's own flags."""
        for line in pages.start_page():
            console.write(line)
        raise Exit


@contextmanager
def _usage_errors() -> Iterator[None]:
    try:
        yield
    except ParseError as error:
        what, hints = _explained(error)
        lines = [f"error: {what}", *(f"  - {console.typed(hint)}" for hint in hints)]
        raise Exit(redact.hidden("\n".join(lines)), code=EXIT_USAGE) from None


def _explained(error: ParseError) -> tuple[str, Sequence[str]]:
    """Explain what is wrong with a command line, and return hints on what to try."""
    # Invoke's error is a text alone, so what it says has to be read out of it again.
    name = error.context.name if error.context else None
    task = namespace.every[name] if name else None
    mode = modes.of_task(name or "")
    page = "all flags: invoke --help"
    if name:
        page = f"its options: invoke {mode.selected} --help" if mode else f"its options: invoke --help {name}"
    typed = mode.selected if mode else name
    if match := re.match(r"No idea what '(.+)' is", str(error)):
        # If Invoke took an unknown flag for the value of a word, it complains of the word behind it.
        wrong = _unknown_flag(name) or match[1]
        what, hints = _unexpected(wrong, error)
        # An unknown task has no options.
        return what, (*hints, page) if name or wrong.startswith("-") else hints
    if task and (match := re.match(r"Flag <Argument: ([\w-]+)", str(error))) and "needed value" in str(error):
        flag = next(option for option in task.options if option.flag == f"--{match[1]}")
        return f"{flag.flag} needs a value: {flag.usage}", (page,)
    if task and "did not receive required positional arguments" in str(error):
        names = set(re.findall(r"'([\w-]+)'", str(error).replace("_", "-")))
        missing = [option for option in task.options if option.word and option.flag[2:] in names]
        hints = [f"{option.placeholder}: {option.about}" for option in missing]
        return f"{typed} needs {' and '.join(option.placeholder for option in missing)}", (*hints, page)
    return str(error), (page,)


def _unexpected(wrong: str, error: ParseError) -> tuple[str, Sequence[str]]:
    """Explain a word or a flag that a task does not take."""
    name = error.context.name if error.context else None
    mode = modes.of_task(name or "")
    if mode and wrong in {other.by for other in modes.MODES if other.command == mode.command}:
        return f"{mode.selected} and {wrong} cannot be combined", ()
    if wrong.startswith("-"):
        return f"unknown flag {wrong}", tuple(_like_flag(wrong, name))
    if name is None:
        return f"unknown task {wrong!r}", _like_task(wrong)
    # The value of the flag that selects a mode is the first word of its task, wherever the flag stands.
    words = error.context.positional_args if mode and error.context else ()
    taken = (f"{str(word.name).upper()} is {word.value!r}" for word in words)
    typed = mode.selected if mode else name
    return f"{typed} does not take the argument {wrong!r}", (*taken, *_as_a_flag(wrong, name))


def _unknown_flag(name: str | None) -> str:
    """Return the first flag that the task does not have; Invoke may have taken it for the value of a word."""
    if name is None:
        return ""
    known = {option.flag for option in (*namespace[name].options, WIDE)} | {"--help"}
    flags = (word.partition("=")[0] for word in command_line()[0] if word.startswith("--"))
    return next((flag for flag in flags if flag not in known and not flag.startswith("--no-")), "")


def _like_task(wrong: str) -> Sequence[str]:
    """Return the nearest task, of all names, and how to list the tasks."""
    near = nearest(wrong, {*namespace.every, *modes.RENAMED})
    listing = "all tasks: invoke --list"
    return (f"did you mean {near!r}?", listing) if near else (listing,)


def _like_flag(wrong: str, name: str | None) -> Iterator[str]:
    """Yield the task's nearest flag, or else the tasks that have the flag."""
    if name is None:
        return
    options = (*namespace[name].options, WIDE)
    if wrong == "--list":
        yield "all tasks: invoke --list"
    # Most tasks around builds have --source; the others read the Triton that is there.
    if wrong == "--source" and any(option.flag == "--env" for option in options):
        yield f"{name} reads the checkout that it runs in, or that of an environment: cd DIR, or --env ENV"
        return
    others = [
        name for name, task in namespace.every.items() if wrong in (option.flag for option in task.options)
    ]
    if others:
        yield f"{wrong} is a flag of {', '.join(others[:_FEW])}{' ...' if others[_FEW:] else ''}"
        return
    if near := nearest(wrong, [option.flag for option in options]):
        yield f"did you mean {near!r}?"


def _as_a_flag(wrong: str, name: str) -> Iterator[str]:
    """Yield the flag for a stray word that is an environment, a GPU or a folder; or else the nearest task."""
    from tritonsmith.core.envs import settings  # noqa: PLC0415 - `invoke --list` does without

    # Reversed: of two flags with the same placeholder, the one that is declared first wins.
    values = {option.placeholder: option for option in reversed(namespace[name].options) if not option.word}
    if "ENV" in values and wrong in [known for known, _, _ in settings.available()]:
        yield f"did you mean {values['ENV'].flag} {wrong}?"
    elif "GPU" in values and wrong in pages.gpus():
        yield f"did you mean {values['GPU'].flag} {wrong}?"
    elif untrusted.is_dir(Path(wrong)) and (folder := values.get("CHECKOUT") or values.get("DIR")):
        yield f"did you mean {folder.flag} {wrong}?"
    else:
        yield from _like_task(wrong)[:-1]


def main() -> None:
    """The console entry point."""
    end_at_closed_pipe()
    try:
        SmithProgram(name="tritonsmith", namespace=namespace, version=__version__).run()
    except SystemExit as end:
        # ^C before a task began: Invoke exits with 1.
        if isinstance(end.__context__, KeyboardInterrupt):
            sys.exit(EXIT_INTERRUPTED)
        raise
