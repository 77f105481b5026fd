"""`watch`: run a command again whenever a file that it depends on is saved."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tritonsmith.errors import UsageError, did_you_mean
from tritonsmith.tasks import option_task
from tritonsmith.tasks.option_fields import flag
from tritonsmith.tasks.task import task

if TYPE_CHECKING:
    from tritonsmith.watch.saves import WatchedFiles


@task()
def watch(
    context: Any,
    run: str = flag("task to run, with its arguments: 'kernel.resources matmul.py'", ""),
    path: tuple[str, ...] = flag("file or folder to watch (repeatable)", ()),
) -> None:
    """Run a task or a command again at each save, and show what is new."""
    from tritonsmith.ui import tables
    from tritonsmith.watch import loop
    from tritonsmith.watch.command import WatchedProgram, WatchedTask

    _, command = option_task.command_line()
    named = [_path(one) for one in path]
    if run and command:
        raise UsageError("--run and a command after -- contradict each other", hints=["omit one of them"])
    if command:
        loop.follow(WatchedProgram(command), [_files_of_command(named)])
        return
    if not run:
        raise UsageError("nothing to run", hints=["--run 'TASK ...'", "a command: invoke watch -- COMMAND"])
    words, values = _parse(run)
    watched = list(_files_of_task(values, named))
    tables.widen(wide="--wide" in words)
    with WatchedTask.server() as server:
        loop.follow(WatchedTask(server, words), watched)


def _path(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.parent.is_dir():
        raise UsageError("no such file or folder", where=path)
    return path


def _files_of_command(named: list[Path]) -> WatchedFiles:
    """The checkout of Triton around the current folder, or the current folder."""
    from tritonsmith.facts import checkout
    from tritonsmith.watch import named_paths, tree_files

    here = Path.cwd()
    return named_paths.NamedPaths(named) if named else tree_files.of(checkout.enclosing(here) or here)


def _parse(text: str) -> tuple[list[str], dict[str, Any]]:
    """The words of a task, and the arguments of its body.

    Raises:
        UsageError: there is no such task, or it does not take them.
    """
    from invoke.exceptions import ParseError

    from tritonsmith.tasks import namespace

    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--run cannot be {text!r}", why=str(error)) from None
    words = words[words[:1] in (["invoke"], ["tritonsmith"], ["./bootstrap"]) :]
    name = words[0] if words else ""
    if name not in namespace.task_names or name == "watch":
        raise UsageError(f"--run names no task: {name!r}", hints=did_you_mean(name, namespace.task_names))
    given = words[1 : words.index("--")] if "--" in words else words[1:]
    try:
        return words, option_task.from_argv(namespace[name], given)
    except ParseError as error:
        raise UsageError(f"--run: {error}", hints=[f"its options: invoke --help {name}"]) from None


def _files_of_task(values: dict[str, Any], named: list[Path]) -> Iterator[WatchedFiles]:
    """What a task depends on.

    Raises:
        UsageError: nothing is known to watch.
    """
    from tritonsmith.watch.named_paths import NamedPaths
    from tritonsmith.watch.python_imports import PythonFiles

    files = [file for text in _texts(values) if (file := _file(text))]
    if not files and not named:
        raise UsageError(
            "nothing to watch: this task names no file", hints=["name one: --path FILE_OR_FOLDER"]
        )
    yield PythonFiles(file for file in files if file.suffix == ".py")
    yield NamedPaths([*named, *files])


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, dict):
        yield from _texts(tuple(value.values()))
    elif is_dataclass(value):
        yield from _texts(tuple(getattr(value, one.name) for one in fields(value)))


def _file(text: str) -> Path | None:
    """The file of FILE or FILE:KERNEL."""
    for name in (text, text.rpartition(":")[0]):
        path = Path(name).expanduser().absolute() if name else None
        if path and path.is_file():
            return path
    return None
