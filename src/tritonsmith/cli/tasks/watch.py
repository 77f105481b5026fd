"""`watch`: run a command again whenever a file that it depends on is saved.

`run --sanitizer`: a program that a sanitizer watches, and what the sanitizer finds.
"""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path
from typing import Any

from invoke.context import Context
from invoke.exceptions import Exit, ParseError

from tritonsmith.build import sanitized_run
from tritonsmith.build.watch import command
from tritonsmith.build.watch.command import WatchedProgram, WatchedTask, WatchedTests
from tritonsmith.cli import modes
from tritonsmith.cli.tasks import namespace, option_fields, output
from tritonsmith.cli.tasks.option_fields import again, command_line, flag
from tritonsmith.cli.tasks.options import DRY_RUN, ENV
from tritonsmith.cli.tasks.output import task
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import SmithError, UsageError, did_you_mean
from tritonsmith.core.ui import console, tables
from tritonsmith.facts import tools


@task()
def watch(
    context: Context,
    run: str = flag("task to run, with its arguments: 'kernel.compile matmul.py'", ""),
    lit: str | None = flag("lit tests to run: a regular expression of their names", None),
    env: str = again(ENV, "dev", default=""),
    source: Path | None = flag("checkout to watch, instead of the current one", None),
    path: tuple[str, ...] = flag("file or folder to watch (repeatable)", ()),
) -> None:
    """Rerun a task or command at each save, and show what changed."""
    words, argv = option_fields.command_line()
    _one_of(run, lit, argv, words)
    if run and env:
        raise UsageError(
            "--env is for --lit and a command; a task has its own", hints=[f"--run {f'{run} --env {env}'!r}"]
        )
    env = env or ENV.default
    _check_filter(lit or "")
    if source and not argv:
        raise UsageError("--source is for a command after --", hints=["--run and --lit know what they need"])
    if source and not source.is_dir():
        raise UsageError("no such folder", where=source)
    space = workspace.default()
    named = [_path(one) for one in path]
    if argv:
        needs = command.of_command(argv, named, env, source, space)
        with WatchedProgram.server() as server:
            command.follow(WatchedProgram(server, argv), needs.files, needs.build)
    elif lit is not None:
        build, files = command.of_tests(named, env, space)
        command.follow(WatchedTests(build, lit), files, build)
    else:
        words, values = _parse(run)
        needs = command.of_task(words[0], values, named, space)
        tables.widen(wide="--wide" in words)
        with WatchedTask.server() as server:
            command.follow(WatchedTask(server, words), needs.files, needs.build)


def _one_of(run: str, lit: str | None, argv: list[str], words: list[str]) -> None:
    given = [name for name, one in (("--run", run), ("--lit", lit is not None), ("--", argv)) if one]
    if not given:
        named = words[words.index("watch") + 1 :]
        task_ = shlex.quote(shlex.join(named)) if named else "'TASK ...'"
        hints = [f"--run {task_}", "--lit FILTER", "a command: invoke watch -- COMMAND"]
        raise UsageError("nothing to run", hints=hints)
    if len(given) > 1:
        raise UsageError(f"{' and '.join(given)} contradict each other", hints=["use one at a time"])


def _check_filter(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        hints = ["a plain name works, too: --lit Triton/canonicalize.mlir"]
        raise UsageError(
            f"--lit {text!r} is not a valid regular expression", why=str(error), hints=hints
        ) from None


def _path(text: str) -> Path:
    path = Path(text).expanduser().absolute()
    if not path.parent.is_dir():
        raise UsageError("no such file or folder", where=path)
    return path


def _parse(text: str) -> tuple[list[str], dict[str, Any]]:
    """Return the words of a task and the arguments of its body.

    Raises:
        UsageError: there is no such task, or it does not take them.
    """
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"--run cannot be {text!r}", why=str(error)) from None
    words = words[words[:1] in (["invoke"], ["tritonsmith"], ["./bootstrap"]) :]
    words = modes.resolved(words)
    name = words[0] if words else ""
    if name == "watch":
        raise UsageError("watch cannot watch itself")
    if name not in namespace.every:
        raise UsageError(f"--run names no task: {name!r}", hints=did_you_mean(name, namespace.every))
    given = words[1 : words.index("--")] if "--" in words else words[1:]
    try:
        return words, option_fields.from_argv(namespace[name], given)
    except ParseError as error:
        raise UsageError(f"--run: {error}", hints=[f"its options: invoke --help {name}"]) from None


@task(name="run")
def run_(
    context: Context,
    sanitizer: str = flag("address, undefined or thread of a build; memcheck, ... on a GPU", ""),
    env: str = ENV,
    dry_run: bool = DRY_RUN,
) -> None:
    """Run a program under a sanitizer, for Triton's C++ or its kernels."""
    _, argv = command_line()
    space = workspace.default()
    place = space.env(settings.load(env).name)
    if sanitizer in tools.sanitizer_tools():
        prepared = sanitized_run.prepare_on_gpu(argv, sanitizer, place, space)
    else:
        prepared = sanitized_run.prepare(argv, sanitizer, place, space)
    if dry_run:
        output.plan(prepared.plan)
        return

    def show(data: bytes) -> None:
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()

    code = sanitized_run.execute(prepared, space, show)
    head, lines = sanitized_run.error_of(prepared)
    if head:
        raise SmithError(head, where=prepared.folder, why="\n".join(lines) or None)
    if code:
        raise Exit(code=code)
    console.note(f"the sanitizer {sanitizer} found nothing")
