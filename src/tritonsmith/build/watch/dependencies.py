"""The files that a command depends on, and the build that it needs, derived from its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build.watch import command
from tritonsmith.build.watch.command import WatchedBuild
from tritonsmith.build.watch.files import NamedPaths, PythonFiles, WatchedFiles, files_of_tree
from tritonsmith.compiler.dump import index
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.schema import Purpose, Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import checkout

_OPT = "triton-opt"
_PYTHON = ("python", "pytest", "py.test")  # prefixes of programs that import Triton


@dataclass(frozen=True)
class Dependencies:
    """The dependencies of a command.

    Attributes:
        files: the files whose saves matter.
        build: the build that it needs; None for none.
    """

    files: tuple[WatchedFiles, ...]
    build: WatchedBuild | None = None


def of_task(name: str, values: Mapping[str, Any], named: Sequence[Path], space: Workspace) -> Dependencies:
    """Return the dependencies of a task of this tool.

    Args:
        name: name of the task.
        values: arguments of its body.
        named: additional files and folders.
        space: the workspace.

    Raises:
        UsageError: there is nothing to watch.
    """
    files = [file for text in _texts(values) if (file := _file(text))]
    task_build = _build_of_task(name, values, space)
    if not files and not named and not task_build:
        hints = ["name it: --path FILE_OR_FOLDER"]
        raise UsageError("nothing to watch: this task names no file", hints=hints)
    sources = (files_of_tree(task_build.source, _compiles),) if task_build else ()
    python = PythonFiles(file for file in files if file.suffix == ".py")
    return Dependencies((python, NamedPaths([*named, *files]), *sources), task_build)


def of_command(
    argv: Sequence[str], named: Sequence[Path], env: str, source: Path | None, space: Workspace
) -> Dependencies:
    """Return the dependencies of a command of the user's.

    Args:
        argv: program and arguments.
        named: files and folders to watch instead of the current one.
        env: environment whose build of this checkout the command uses.
        source: checkout; None for the one around the current folder.
        space: the workspace.
    """
    # The command is the user's, and tells nothing of what it reads: the whole tree around it is watched.
    here = source or checkout.enclosing(Path.cwd())
    chosen = settings.load(env)
    folder = space.env(chosen.name).build
    watched_build = command.build_of(folder, _purpose(argv), chosen, space)
    if watched_build is None or here is None or watched_build.source.resolve() != here.resolve():
        watched_build = None
    files: list[WatchedFiles] = [NamedPaths(named)] if named else [files_of_tree(here or Path.cwd())]
    if watched_build and named:
        files.append(files_of_tree(watched_build.source, _compiles))
    return Dependencies(tuple(files), watched_build)


def of_tests(
    named: Sequence[Path], env: str, space: Workspace
) -> tuple[WatchedBuild, tuple[WatchedFiles, ...]]:
    """Return the build that an environment's lit tests need, and the files that they depend on.

    Raises:
        FactError: the environment has no build.
    """
    chosen = settings.load(env)
    watched_build = command.build_of(space.env(chosen.name).build, "tests", chosen, space)
    if watched_build is None:
        hints = ["run `invoke build-triton --for tests` first, or use another environment: --env NAME"]
        where = space.env(chosen.name).build
        raise FactError(f"environment {chosen.name!r} has no build of Triton", where=where, hints=hints)
    tests = watched_build.source / "test"
    sources = files_of_tree(
        watched_build.source, lambda path: command.is_built(path) or path.is_relative_to(tests)
    )
    return watched_build, (sources, NamedPaths(named))


def _build_of_task(name: str, values: Mapping[str, Any], space: Workspace) -> WatchedBuild | None:
    """Return the build that a task on kernels or dumps needs, by its choice of program or interpreter."""
    group, _, _ = name.partition(".")
    if group not in ("kernel", "passes"):
        return None
    opt, env, python = (_value(values, argument) for argument in ("triton_opt", "env", "python"))
    chosen = settings.load(env or "dev")
    if opt:
        # BUILD/bin/triton-opt, whatever link it was named by.
        return command.build_of(Path(opt).resolve().parent.parent, "opt", chosen, space)
    if env and not python:
        folder = space.env(chosen.name).build
        # Passes are replayed by triton-opt if the build has one, else by the Python
        # module: only that is rebuilt.
        replays = group == "passes" and (folder / "bin" / _OPT).is_file()
        return command.build_of(folder, "opt" if replays else "python", chosen, space)
    return _build_of_python(python or _python_of_dump(values), chosen, space)


def _build_of_python(python: str, chosen: Settings, space: Workspace) -> WatchedBuild | None:
    """Return the build of the environment that an interpreter belongs to."""
    path = Path(python)
    if not python or len(path.parents) < 3:  # noqa: PLR2004 - NAME/venv/bin/python
        return None
    env = space.env(path.parents[2].name)
    return command.build_of(env.build, "python", chosen, space) if env.python == path else None


def _python_of_dump(values: Mapping[str, Any]) -> str:
    """Return the interpreter that wrote a dump, which also replays it by default."""
    folder = values.get("folder")
    if not isinstance(folder, Path) or not (folder / index.FILE).is_file():
        return ""
    return index.read(folder).python


def _purpose(argv: Sequence[str]) -> Purpose:
    """Return the purpose of the build that a command needs: `triton-opt`, the Python module, or both."""
    names = {Path(word).name for word in argv}
    program = Path(argv[0]).name
    if program.startswith(_PYTHON) and _OPT not in names:
        return "python"
    return "opt" if program == _OPT else "all"


def _compiles(path: Path) -> bool:
    return command.is_built(path) or path.suffix == ".py"


def _value(values: Mapping[str, Any], name: str) -> str:
    """Return an argument, or a field of one, as text."""
    held = [values, *(vars(holder) for holder in values.values() if is_dataclass(holder))]
    return next((str(holder[name]) for holder in held if holder.get(name)), "")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, (tuple, list)):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, Mapping):
        yield from _texts(tuple(value.values()))
    elif is_dataclass(value):
        yield from _texts(tuple(getattr(value, item.name) for item in fields(value)))


def _file(text: str) -> Path | None:
    """Return the file of FILE or FILE:KERNEL; None for a program or a file without a suffix."""
    # The whole text first: a file's own name may contain a colon.
    for name in (text, text.rpartition(":")[0]):
        path = Path(name).expanduser().absolute() if name else None
        # An interpreter or compiler among the arguments has no suffix, and does not
        # change while one watches.
        if path and path.is_file() and path.suffix:
            return path
    return None
