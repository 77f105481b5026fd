"""`editor`, `link-compile-commands` and `watch`: settings of editors, clangd, and what runs at each save."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from invoke.context import Context
from invoke.exceptions import Exit, ParseError

from tritonsmith.build.editors import command, merged_files
from tritonsmith.build.editors import container as containers
from tritonsmith.build.triton import commands
from tritonsmith.build.watch import command as watching
from tritonsmith.build.watch.command import WatchedProgram, WatchedTask, WatchedTests
from tritonsmith.cli import modes
from tritonsmith.cli.tasks import namespace, option_fields, output
from tritonsmith.cli.tasks.kernel_options import PoolOptions
from tritonsmith.cli.tasks.option_fields import CommaList, CommaLists, again, flag, word
from tritonsmith.cli.tasks.options import (
    AT,
    DRY_RUN,
    ENV,
    LIBCUDA,
    OUT,
    PYTHON,
    SOURCE,
    TARGET,
    TRITON_AT,
    WHEEL_ENV,
)
from tritonsmith.cli.tasks.task import task
from tritonsmith.compiler import fill
from tritonsmith.compiler.fill import FillWish
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.ui import console, tables

if TYPE_CHECKING:
    from tritonsmith.build.editors.merged_files import MergedFile
    from tritonsmith.core.ui.tables import Grid


@task(tables=True, name="editor")
def editor_(
    context: Context,
    editor: str = word("vscode, neovim, emacs or clion"),
    env: str = ENV,
    pass_: str = flag("pass in which the debugger stops", "tritongpu-coalesce"),
    force: bool = flag("replace settings that have different values", default=False),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write editor settings: language servers, debuggers, tasks."""
    space = workspace.default()
    prepared = command.prepare(editor, env, space, pass_, force=force)
    project = prepared.project
    if dry_run:
        output.plan(prepared.plan)
    else:
        with receipts.open_session("editor", project.env.name) as running:
            # Again under the lock: the user's editor may have saved its settings since the first time.
            prepared = command.prepare(editor, env, space, pass_, force=force)
            running.run(prepared.plan)
        console.out().print(table(str(project.root), prepared.files))
        if excluded := merged_files.excluded(project.root):
            console.note(f"git ignores these files: {excluded} lists them")
    # Also after a dry run: a setting of the user's that stays may keep the debugger from finding this build.
    for file in prepared.files:
        for conflict in file.conflicts:
            console.warn(
                f"{file.name}: {conflict.path} stays {conflict.value!r}; "
                f"for this build: {conflict.ours!r} (--force)"
            )
    for name, how in project.missing.items():
        console.warn(f"no {name}: {how}")


def table(root: str, files: tuple[MergedFile, ...]) -> Grid:
    """Return the table of what happens to each file."""
    return tables.plain(root, ["", "file"], [[file.change, file.name] for file in files])


@task(tables=True)
def container(
    context: Context,
    env: str = again(ENV, "dev; with --warm, wheel", default=""),
    warm: Path | None = flag("kernels file: fill a cache, and add it to an image", None, value="FILE.toml"),
    image: str = flag("image that the cache is added to", "", unset="named by docker build"),
    python: Path | None = again(PYTHON, "that of --env"),
    target: CommaLists = TARGET,
    at: str = again(AT, default=str(containers.WARM)),
    libcuda: CommaList = LIBCUDA,
    triton_at: str = TRITON_AT,
    out: Path | None = again(OUT, ".devcontainer, triton-image"),
    dry_run: bool = DRY_RUN,
) -> None:
    """Write a Dockerfile: it builds a Triton, or adds a filled cache."""
    if warm:
        folder = (out or Path.cwd() / "triton-image").expanduser().absolute()
        by = PoolOptions(env=env or WHEEL_ENV.default, python=python)
        wish = FillWish(containers.warm_cache(folder), Path(at), libcuda, triton_at)
        _warm(warm, by, target, wish, image, dry_run=dry_run)
        return
    if image or python or target or libcuda or triton_at or at != str(containers.WARM):
        raise UsageError("these flags are about a filled cache", hints=["give its kernels: --warm FILE.toml"])
    space = workspace.default()
    folder = out or Path.cwd() / ".devcontainer"
    plan, missing = containers.prepare(env or ENV.default, space, Path.cwd(), folder)
    if missing:
        console.warn(f"the container lacks what this checkout has: {missing}")
    if dry_run:
        output.plan(plan)
        return
    space.claim()
    space.run(plan, "container", quiet=True)
    console.out().print(f"docker build {folder}", markup=False)


def _warm(
    kernels: Path, by: PoolOptions, target: CommaLists, wish: FillWish, image: str, *, dry_run: bool
) -> None:
    """Fill a cache, and write the Dockerfile of an image that has it."""
    from tritonsmith.cli.tasks import cache

    folder = wish.out.parent
    # Before a compile, since the folder may have a Dockerfile of the user's.
    plan = containers.warm_plan(folder, image, wish.home, kernels)
    prepared = cache.prepared_fill(str(kernels), by, target, wish, dry_run=dry_run)
    if dry_run:
        output.plan(prepared.plan)
        output.plan(plan)
        return
    filled = fill.execute(prepared)
    workspace.default().run(plan, "container", quiet=True)
    cache.print_filled(filled, wish.out)
    named = () if image else ("--build-arg", "IMAGE=NAME")
    console.out().print(shlex.join(("docker", "build", *named, str(folder))), markup=False)
    if filled.is_incomplete:
        raise Exit(code=1)


@task(tables=True, name="link-compile-commands")
def link_compile_commands(
    context: Context, env: str = ENV, source: str = SOURCE, dry_run: bool = DRY_RUN
) -> None:
    """Link one compile_commands.json of Triton and LLVM for clangd."""
    chosen = settings.load(env, {"triton.source": source or None})
    space, located = commands.find_triton(chosen)
    prepared = commands.link_compile_commands(chosen, space, located)
    if dry_run:
        output.plan(prepared.plan)
        return
    with receipts.open_session("link-compile-commands", chosen.name) as running:
        commands.execute(prepared, running)
    output.done(f"clangd reads {located.root / 'compile_commands.json'}", running)


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
    _require_one_subject(run, lit, argv, words)
    # `env` has no default of its own here: given beside `--run`, it would be ignored, which must not go
    # unnoticed.
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
    named = [_path(text) for text in path]
    if argv:
        needs = watching.of_command(argv, named, env, source, space)
        with WatchedProgram.server() as server:
            watching.follow(WatchedProgram(server, argv), needs.files, needs.build)
    elif lit is not None:
        build, files = watching.of_tests(named, env, space)
        watching.follow(WatchedTests(build, lit), files, build)
    else:
        words, values = _parse(run)
        needs = watching.of_task(words[0], values, named, space)
        # The task runs in a fork of this process, and prints at the width that is set here.
        tables.widen(wide="--wide" in words)
        with WatchedTask.server() as server:
            watching.follow(WatchedTask(server, words), needs.files, needs.build)


def _require_one_subject(run: str, lit: str | None, argv: list[str], words: list[str]) -> None:
    subjects = (("--run", run), ("--lit", lit is not None), ("--", argv))
    names = [name for name, is_given in subjects if is_given]
    if not names:
        # Most likely the user typed the task's name after `watch`: the hint repeats it.
        named = words[words.index("watch") + 1 :]
        task_ = shlex.quote(shlex.join(named)) if named else "'TASK ...'"
        hints = [f"--run {task_}", "--lit FILTER", "a command: invoke watch -- COMMAND"]
        raise UsageError("nothing to run", hints=hints)
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} contradict each other", hints=["use one at a time"])


def _check_filter(text: str) -> None:
    try:
        re.compile(text)
    except re.error as error:
        hints = ["a plain name works, too: --lit Triton/canonicalize.mlir"]
        raise UsageError(
            f"--lit {text!r} is not a valid regular expression", why=str(error), hints=hints
        ) from None


def _path(text: str) -> Path:
    # A file that does not exist yet may be watched, but its folder must be there.
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
    # A line that was copied from a shell begins with the program's name.
    words = words[words[:1] in (["invoke"], ["tritonsmith"], ["./bootstrap"]) :]
    words = modes.resolved(words)
    name = words[0] if words else ""
    if name == "watch":
        raise UsageError("watch cannot watch itself")
    if name not in namespace.every:
        raise UsageError(f"--run names no task: {name!r}", hints=did_you_mean(name, namespace.every))
    arguments = words[1 : words.index("--")] if "--" in words else words[1:]
    try:
        return words, option_fields.from_argv(namespace[name], arguments)
    except ParseError as error:
        raise UsageError(f"--run: {error}", hints=[f"its options: invoke --help {name}"]) from None
