"""What a command depends on, and what it needs to have built, from its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

from tritonsmith.build.watch import build, tree_files
from tritonsmith.build.watch.build import WatchedBuild
from tritonsmith.build.watch.named_paths import NamedPaths
from tritonsmith.build.watch.python_imports import PythonFiles
from tritonsmith.build.watch.saves import WatchedFiles
from tritonsmith.compiler.dump import index
from tritonsmith.core.envs import settings
from tritonsmith.core.envs.schema import Purpose, Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import checkout

_OPT = "triton-opt"
_PYTHON = ("python", "pytest", "py.test")  # programs that import Triton, by how their names begin


@dataclass(frozen=True)
class Dependencies:
    """What a command depends on.

    Attributes:
        files: whose saves matter.
        build: what it needs to have built; None if nothing.
    """

    files: tuple[WatchedFiles, ...]
    build: WatchedBuild | None = None


def of_task(name: str, values: Mapping[str, Any], named: Sequence[Path], space: Workspace) -> Dependencies:
    """The dependencies of a task of this tool.

    Args:
        name: of the task.
        values: the arguments of its body.
        named: more files and folders.
        space: the workspace.

    Raises:
        UsageError: nothing is known to watch.
    """
    files = [file for text in _texts(values) if (file := _file(text))]
    made = _build_of_task(name, values, space)
    if not files and not named and not made:
        hints = ["name it: --path FILE_OR_FOLDER"]
        raise UsageError("nothing to watch: this task names no file", hints=hints)
    sources = (tree_files.of(made.source, _compiles),) if made else ()
    python = PythonFiles(file for file in files if file.suffix == ".py")
    return Dependencies((python, NamedPaths([*named, *files]), *sources), made)


def of_command(
    argv: Sequence[str], named: Sequence[Path], env: str, source: Path | None, space: Workspace
) -> Dependencies:
    """The dependencies of a command of the user's.

    Args:
        argv: program and arguments.
        named: files and folders, instead of the current one.
        env: environment whose build of this checkout the command uses.
        source: checkout; the one around the current folder if None.
        space: the workspace.
    """
    here = source or checkout.enclosing(Path.cwd())
    chosen = settings.load(env)
    folder = space.env(chosen.name).build
    made = build.of(folder, _purpose(argv), chosen, space)
    if made is None or here is None or made.source.resolve() != here.resolve():
        made = None
    files: list[WatchedFiles] = [NamedPaths(named)] if named else [tree_files.of(here or Path.cwd())]
    if made and named:
        files.append(tree_files.of(made.source, _compiles))
    return Dependencies(tuple(files), made)


def of_tests(
    named: Sequence[Path], env: str, space: Workspace
) -> tuple[WatchedBuild, tuple[WatchedFiles, ...]]:
    """The build that the lit tests of an environment test, and the files that they depend on.

    Raises:
        FactError: nothing was built there.
    """
    chosen = settings.load(env)
    made = build.of(space.env(chosen.name).build, "tests", chosen, space)
    if made is None:
        hints = ["run `invoke build-triton --for tests` first, or use another environment: --env NAME"]
        where = space.env(chosen.name).build
        raise FactError(f"environment {chosen.name!r} has no build of Triton", where=where, hints=hints)
    tests = made.source / "test"
    sources = tree_files.of(made.source, lambda path: build.is_built(path) or path.is_relative_to(tests))
    return made, (sources, NamedPaths(named))


def _build_of_task(name: str, values: Mapping[str, Any], space: Workspace) -> WatchedBuild | None:
    """What a task on kernels or dumps needs: its own choice of a program or of an interpreter."""
    group, _, _ = name.partition(".")
    if group not in ("kernel", "passes"):
        return None
    opt, env, python = (_value(values, one) for one in ("triton_opt", "env", "python"))
    chosen = settings.load(env or "dev")
    if opt:
        return build.of(Path(opt).resolve().parent.parent, "opt", chosen, space)
    if env and not python:
        folder = space.env(chosen.name).build
        replays = group == "passes" and (folder / "bin" / _OPT).is_file()
        return build.of(folder, "opt" if replays else "python", chosen, space)
    return _build_of_python(python or _python_of_dump(values), chosen, space)


def _build_of_python(python: str, chosen: Settings, space: Workspace) -> WatchedBuild | None:
    """The build of the environment that an interpreter is in."""
    path = Path(python)
    if not python or len(path.parents) < 3:  # noqa: PLR2004 - NAME/venv/bin/python
        return None
    env = space.env(path.parents[2].name)
    return build.of(env.build, "python", chosen, space) if env.python == path else None


def _python_of_dump(values: Mapping[str, Any]) -> str:
    """The interpreter that printed a dump, which replays it unless told otherwise."""
    folder = values.get("folder")
    if not isinstance(folder, Path) or not (folder / index.FILE).is_file():
        return ""
    return index.read(folder).python


def _purpose(argv: Sequence[str]) -> Purpose:
    """What a command needs: `triton-opt`, the Python module, or both."""
    names = {Path(word).name for word in argv}
    program = Path(argv[0]).name
    if program.startswith(_PYTHON) and _OPT not in names:
        return "python"
    return "opt" if program == _OPT else "all"


def _compiles(path: Path) -> bool:
    return build.is_built(path) or path.suffix == ".py"


def _value(values: Mapping[str, Any], name: str) -> str:
    """An argument, or a field of one, as text."""
    held = [values, *(vars(one) for one in values.values() if is_dataclass(one))]
    return next((str(one[name]) for one in held if one.get(name)), "")


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, (str, Path)):
        yield str(value)
    elif isinstance(value, (tuple, list)):
        for one in value:
            yield from _texts(one)
    elif isinstance(value, Mapping):
        yield from _texts(tuple(value.values()))
    elif is_dataclass(value):
        yield from _texts(tuple(getattr(value, one.name) for one in fields(value)))


def _file(text: str) -> Path | None:
    """The file of FILE or FILE:KERNEL; no program, and nothing of a build."""
    for name in (text, text.rpartition(":")[0]):
        path = Path(name).expanduser().absolute() if name else None
        if path and path.is_file() and path.suffix:
            return path
    return None
