"""What others wrote: files, JSON and TOML, of bounded size, and no surprise in how they fail.

`OSError` is about the file (there is none, it cannot be read, it is too large or a pipe), `UnreadableError`,
a `ValueError`, about what is in it. Bytes that are no UTF-8 are replaced: a path in Latin-1 beside what is
looked for is no reason to give up.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import tomllib
from collections.abc import Hashable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

LIMIT = 64 << 20  # bytes of a text; a CMake cache of LLVM has 0.3 MiB
OURS = 1 << 30  # of what the tool wrote, or had written: manifests of 40,000 compiled points, a build.ninja
TOML_LIMIT = 1 << 20  # tomllib takes 2 s for so much
_CHUNK = 1 << 16  # bytes
T = TypeVar("T")
DEPTH = 64  # of tables in each other: what goes deeper ends in a RecursionError somewhere


class UnreadableError(ValueError):
    """Text is not what its format asks for.

    Attributes:
        hints: things to try.
    """

    hints: tuple[str, ...] = ()


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """The content of a regular file.

    Args:
        path: the file; links are followed.
        limit: bytes that it may have.

    Raises:
        OSError: there is none, it cannot be read, it is too large, or something else than a file.
    """
    try:
        handle = os.open(
            path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        )  # a pipe would wait for its other end
    except ValueError as error:  # a NUL in the path
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from None
    with open(handle, "rb") as file:  # noqa: PTH123 - of a descriptor
        about = os.fstat(handle)
        mode = about.st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, and no file", str(path))
        content = file.read(
            min(about.st_size, limit) + 1
        )  # no more: `read` makes room for all it is asked for
        while len(content) <= limit and (more := file.read(_CHUNK)):
            content += more  # of /proc, whose files say that they are empty
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", str(path))
    return content


def read_text(path: Path, limit: int = LIMIT) -> str:
    """The text of a file, as UTF-8; other bytes are replaced, and so is NUL: no path from it has one.

    Raises:
        OSError: as `read_bytes` does.
    """
    text = read_bytes(path, limit).decode("utf-8", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


def is_file(path: Path) -> bool:
    """Whether a path that others name is a file. `Path.is_file` raises where a name is too long."""
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: Path) -> bool:
    """Whether a path that others name is a folder."""
    return os.path.isdir(path)  # noqa: PTH112


def exists(path: Path) -> bool:
    """Whether there is something at a path that others name."""
    return os.path.exists(path)  # noqa: PTH110


def fits(path: Path) -> bool:
    """Whether a file can have such a name; to look at another one raises an `OSError` or a `ValueError`."""
    try:
        longest = max(map(len, map(os.fsencode, path.parts)), default=0)
        whole = os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return longest < 256 and len(whole) < 4096 and b"\0" not in whole  # noqa: PLR2004 - NAME_MAX, PATH_MAX


def real(path: Path) -> Path:
    """A path that others name, without links. `Path.resolve` raises where links go in circles.

    One with a NUL, which JSON can say and no file's name can have, stays as it is.
    """
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path


def json_of(text: str | bytes) -> Any:
    """What JSON says.

    Raises:
        UnreadableError: it is none, or nested too deeply, or has a number that is too large.
    """
    try:
        return _shallow(json.loads(text))
    except RecursionError:
        raise UnreadableError("it is nested too deeply") from None
    except UnreadableError:
        raise
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def read_json(path: Path, limit: int = LIMIT) -> Any:
    """What a file of JSON says.

    Raises:
        OSError: as `read_bytes` does.
        UnreadableError: as `json_of` does.
    """
    return json_of(read_bytes(path, limit))


def read_toml(path: Path) -> dict[str, Any]:
    """What a file of TOML says.

    Raises:
        OSError: as `read_bytes` does.
        UnreadableError: it is none, or nested too deeply, or has a number that is too large.
    """
    try:
        table: dict[str, Any] = _shallow(tomllib.loads(read_bytes(path, TOML_LIMIT).decode("utf-8")))
    except RecursionError:
        raise UnreadableError("it is nested too deeply") from None
    except UnreadableError:
        raise
    except ValueError as error:
        raise UnreadableError(str(error)) from error
    return table


def typed(kind: Any, value: Any, name: str = "it") -> Any:
    """A value as a type says, made of what JSON has: tables become data classes, lists tuples.

    Args:
        kind: a data class, `str`, `bool`, `int`, `None`, a `Literal`, a `tuple[X, ...]`, or a union of these.
        value: parsed JSON. Keys that a data class does not know are passed over: a later version added them.
        name: of the value, for the error.

    Raises:
        UnreadableError: it is something else; names the key.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return _made(kind, value, name)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        kind = next((one for one in inner if _is(one, value)), inner[0])
        return typed(kind, value, name)
    if origin is tuple:
        if not isinstance(value, list):
            raise UnreadableError(f"{name} is no list")
        return tuple(typed(inner[0], one, f"{name}[{index}]") for index, one in enumerate(value))
    right = any(_is(type(one), value) and one == value for one in inner) if inner else _is(kind, value)
    if not right:
        raise UnreadableError(f"{name} cannot be {json.dumps(value)[:40]}")
    return value


def shaped(kind: type[T], table: Mapping[str, Any], **ours: Any) -> T:
    """A data class of a table of JSON, whose values have the types that its fields say, one level deep.

    Quicker than `typed`, for tables of which there are thousands, and for texts that may hold a NUL.

    Args:
        kind: the data class.
        table: parsed JSON.
        ours: fields that are not from there.

    Raises:
        UnreadableError: a value has another type; names the key.
        KeyError, TypeError: a key is unknown, or missing.
    """
    shapes = _shapes(cast("Hashable", kind))
    for name, value in table.items():
        types, inner = shapes[name]
        rows = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        if type(value) not in types or (inner and any(type(one) not in inner for one in rows)):
            raise UnreadableError(f"{name} cannot be {json.dumps(value)[:40]}")
    return kind(**table, **ours)


@cache
def _shapes(kind: Hashable) -> dict[str, tuple[frozenset[Any], frozenset[Any]]]:
    return {name: _shape(hint) for name, hint in get_type_hints(kind).items()}


def _shape(hint: Any) -> tuple[frozenset[Any], frozenset[Any]]:
    """Python types of a value, and of what is in it; none of these if that may be anything."""
    origin, inner = get_origin(hint), get_args(hint)
    if not inner:
        return frozenset({hint, int} if hint is float else {hint}), frozenset()
    if origin is UnionType:
        shapes = [_shape(one) for one in inner]
        return frozenset().union(*(types for types, _ in shapes)), frozenset().union(
            *(one for _, one in shapes)
        )
    if origin is Literal:
        return frozenset(map(type, inner)), frozenset()
    content = inner[1] if origin is Mapping else inner[0]
    within = frozenset() if content is Any else _shape(content)[0]
    return frozenset({dict} if origin is Mapping else {list}), within


def place_in(name: str) -> str:
    """A path that a list of files in a folder has, if it leads to a place in this folder.

    Raises:
        UnreadableError: it leads elsewhere, or no file can have it.
    """
    parts = name.split("/")
    if not name or name.startswith("/") or ".." in parts or "\0" in name or not _is_text(name):
        raise UnreadableError(f"{name[:80]!r} is no file of this folder")
    return name


def _is_text(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


def _is(kind: Any, value: Any) -> bool:
    """Whether a value has a type; a number is one that other programs know as well, a text can be a path."""
    if isinstance(value, str):
        return kind is str and "\0" not in value
    if isinstance(value, int) and not isinstance(value, bool):
        return kind is int and abs(value) < 1 << 63
    return value is None if kind is NoneType else type(value) is kind


def _made(kind: type[Any], value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise UnreadableError(f"{name} is no table")
    hints = get_type_hints(kind)
    values = {}
    for one in fields(kind):
        if one.name in value:
            values[one.name] = typed(
                hints[one.name], value[one.name], one.name if name == "it" else f"{name}.{one.name}"
            )
        elif one.default is MISSING and one.default_factory is MISSING:
            raise UnreadableError(f"{name} has no {one.name}")
    return kind(**values)


def _shallow(value: Any) -> Any:
    level = [value]
    for _ in range(DEPTH):
        level = [
            child
            for one in level
            if isinstance(one, (dict, list))
            for child in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return value
    raise UnreadableError("it is nested too deeply")
