"""Read files, JSON, TOML and Python of other programs, with bounded size and predictable errors.

`OSError` is about the file (missing, unreadable, too large or a pipe), `UnreadableError`, a `ValueError`,
about its content. Bytes that are not UTF-8 are replaced: an unrelated path in Latin-1 should not make
the whole file unreadable.
"""

from __future__ import annotations

import ast
import errno
import itertools
import json
import os
import stat
import sys
import threading
import tomllib
from collections.abc import Hashable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, BinaryIO, Literal, TypeVar, cast, get_args, get_origin, get_type_hints

LIMIT = 64 << 20  # bytes of a text; a CMake cache of LLVM has 0.3 MiB
OURS = 1 << 30  # of what the tool wrote, or had written: manifests of 40,000 compiled points, a build.ninja
TOML_LIMIT = 1 << 20  # tomllib takes 2 s for so much
_CHUNK = 1 << 16  # bytes
T = TypeVar("T")
# Where one thread interrupts another's parser, CPython 3.11 takes the depth of the one for that of the other,
# and raises a SystemError. 3.10, 3.12 and 3.13 do not.
_PARSER = threading.Lock() if sys.version_info[:2] == (3, 11) else nullcontext()
DEPTH = 64  # of tables in each other: what goes deeper ends in a RecursionError somewhere

# The name of a folder of a clearing in the cache begins with this; the next clearing empties it.
TRASH = ".tritonsmith-trash-"


class UnreadableError(ValueError):
    """A text does not have the expected format.

    Attributes:
        hints: things to try.
    """

    hints: tuple[str, ...] = ()


@dataclass(frozen=True)
class SeenEntry:
    """An entry of a cache, as it was when it was inspected.

    Attributes:
        name: `ENTRY`, or `ENTRY/NAME` for something in an entry.
        changed: its modification time, in nanoseconds.
    """

    name: str
    changed: int


@dataclass(frozen=True)
class CacheIndex:
    """The file by which readers find the other files of an entry.

    Attributes:
        prefix: of its name.
        empty: content of one that names no file. It is replaced, not removed: readers may open it by now.
    """

    prefix: str
    empty: str


def opened(path: Path) -> BinaryIO:
    """Return a regular file, open for reading in pieces.

    Args:
        path: the file; links are followed.

    Raises:
        OSError: it is missing, unreadable, or not a regular file.
    """
    return open(_open(path)[0], "rb")  # noqa: PTH123 - of a descriptor


def _open(path: Path) -> tuple[int, int]:
    """Return a descriptor of a regular file, and its size in bytes: see `opened`."""
    try:
        # Without O_NONBLOCK the open of a named pipe would wait for a writer, for ever.
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except ValueError as error:  # a NUL in the path
        raise FileNotFoundError(errno.ENOENT, str(error), str(path)) from None
    status = os.fstat(handle)
    if not stat.S_ISREG(status.st_mode):
        os.close(handle)
        if stat.S_ISDIR(status.st_mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "a pipe or a device, not a file", str(path))
    return handle, status.st_size


def read_bytes(path: Path, limit: int = LIMIT) -> bytes:
    """Return the content of a regular file.

    Args:
        path: the file; links are followed.
        limit: maximum size in bytes.

    Raises:
        OSError: it is missing, unreadable, too large, or not a regular file.
    """
    handle, size = _open(path)
    # Without a file of Python's, which takes as long as all else for the thousands of files of a list.
    try:
        # Not `read(limit + 1)`: Python makes room for all that is asked for, 64 MiB for each small file.
        content = os.read(handle, min(size, limit) + 1)
        # Files of /proc have the size 0, and a file may grow while it is read.
        while len(content) <= limit and (more := os.read(handle, max(_CHUNK, size - len(content)))):
            content += more
    finally:
        os.close(handle)
    if len(content) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit:,} bytes", str(path))
    return content


def read_text(path: Path, limit: int = LIMIT) -> str:
    """Return the text of a file, as UTF-8; invalid bytes and NUL are replaced, so paths from it are valid.

    Raises:
        OSError: as `read_bytes` does.
    """
    text = read_bytes(path, limit).decode("utf-8", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\N{REPLACEMENT CHARACTER}")


def exact_text(path: Path) -> str:
    """Return the text of a file with all of its bytes: line ends stay, and surrogates are no UTF-8.

    For files that are changed, and keep what somebody else wrote: see `exact_bytes`.

    Raises:
        OSError: as `read_bytes` does.
    """
    return read_bytes(path).decode("utf-8", errors="surrogateescape")


def exact_bytes(text: str) -> bytes:
    """Return the bytes of an `exact_text`."""
    return text.encode("utf-8", errors="surrogateescape")


def text_if_any(path: Path) -> str:
    """Return the text of a file without the white space at its end; empty if it cannot be read."""
    try:
        return read_text(path).rstrip()
    except OSError:
        return ""


def is_file(path: Path) -> bool:
    """Return whether a path that others name is a file."""
    # Not `Path.is_file`, which raises where the name is too long.
    return os.path.isfile(path)  # noqa: PTH113


def is_dir(path: Path) -> bool:
    """Return whether a path that others name is a folder."""
    return os.path.isdir(path)  # noqa: PTH112


def exists(path: Path) -> bool:
    """Return whether there is something at a path that others name."""
    return os.path.exists(path)  # noqa: PTH110


def fits(path: Path) -> bool:
    """Return whether a file can have this name; others raise an `OSError` or a `ValueError` on access."""
    try:
        longest = max(map(len, map(os.fsencode, path.parts)), default=0)
        whole = os.fsencode(path)
    except UnicodeEncodeError:  # half of a surrogate pair
        return False
    return longest < 256 and len(whole) < 4096 and b"\0" not in whole  # noqa: PLR2004 - NAME_MAX, PATH_MAX


def real(path: Path) -> Path:
    """Resolve the links of a path that others name; one with a NUL, which JSON allows, is unchanged."""
    # Not `Path.resolve`, which raises on circular links.
    try:
        return Path(os.path.realpath(path))
    except ValueError:
        return path


def json_of(text: str | bytes) -> Any:
    """Parse JSON.

    Raises:
        UnreadableError: invalid, nested too deeply, or with a number that is too large.
    """
    try:
        value = json.loads(text)
        # To look at all values costs more than to parse them, and a text with so few brackets cannot be
        # nested more deeply.
        pairs = text.count("[") + text.count("{") if isinstance(text, str) else DEPTH + 1
        return value if pairs <= DEPTH else _shallow(value)
    except RecursionError:
        raise UnreadableError("nested too deeply") from None
    except UnreadableError:
        raise
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def read_json(path: Path, limit: int = LIMIT) -> Any:
    """Parse a JSON file.

    Raises:
        OSError: as `read_bytes` does.
        UnreadableError: as `json_of` does.
    """
    return json_of(read_bytes(path, limit))


def read_toml(path: Path, limit: int = TOML_LIMIT) -> dict[str, Any]:
    """Parse a TOML file.

    Args:
        path: the file.
        limit: maximum size in bytes.

    Raises:
        OSError: as `read_bytes` does.
        UnreadableError: invalid, nested too deeply, or with a number that is too large.
    """
    return toml_of(read_bytes(path, limit))


def toml_of(content: bytes) -> dict[str, Any]:
    """Parse the content of a TOML file.

    Raises:
        UnreadableError: as `read_toml` does.
    """
    try:
        table: dict[str, Any] = _shallow(tomllib.loads(content.decode("utf-8")))
    except RecursionError:
        raise UnreadableError("nested too deeply") from None
    except UnreadableError:
        raise
    except ValueError as error:
        raise UnreadableError(str(error)) from error
    # tomllib takes integers of any length. Python refuses to print one of more than 4300 digits, so the
    # error would come from the line that prints the value; in hexadecimal even parsing has no limit.
    if not all(map(fits_64_bits, _whole_numbers(table))):
        raise UnreadableError("a whole number does not fit 64 bits with a sign")
    return table


def fits_64_bits(number: int) -> bool:
    """Report whether `read_toml` takes a whole number: 64 bits with a sign, as TOML promises no more."""
    return _is(int, number)


def _whole_numbers(value: Any) -> Iterator[int]:
    if isinstance(value, (dict, list)):
        for child in value.values() if isinstance(value, dict) else value:
            yield from _whole_numbers(child)
    elif type(value) is int:
        yield value


def parse(text: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Parse Python as `ast.parse` does, also in several threads."""
    with _PARSER:
        return ast.parse(text, name)


def parse_expression(text: str) -> ast.expr:
    """Parse an expression as `ast.parse` does, also in several threads."""
    with _PARSER:
        return ast.parse(text, mode="eval").body


def python_tree(text: str | bytes, name: str = "<unknown>") -> ast.Module:
    """Parse Python.

    Args:
        text: the source.
        name: of the file, for the error.

    Raises:
        SyntaxError: invalid, perhaps only for this version of Python.
        UnreadableError: nested too deeply for the parser, or with a NUL.
    """
    try:
        return parse(text, name)
    # The parser's stack is full, not the machine's memory: CPython reports "too
    # many nested parentheses" so.
    except (RecursionError, MemoryError):
        raise UnreadableError("nested too deeply") from None
    except ValueError as error:
        raise UnreadableError(str(error)) from error


def typed(kind: Any, value: Any, name: str = "it") -> Any:
    """Convert parsed JSON to a type: tables become data classes, lists become tuples.

    Args:
        kind: a data class, `str`, `bool`, `int`, `None`, a `Literal`, a `tuple[X, ...]`, or a union of these.
        value: parsed JSON. Keys unknown to a data class are ignored: a later version added them.
        name: name of the value, for the error.

    Raises:
        UnreadableError: it has another type; the error names the key.
    """
    if is_dataclass(kind) and isinstance(kind, type):
        return _dataclass_from(kind, value, name)
    origin, inner = get_origin(kind), get_args(kind)
    if origin is UnionType:
        kind = next((choice for choice in inner if _is(choice, value)), inner[0])
        return typed(kind, value, name)
    if origin is tuple:
        if not isinstance(value, list):
            raise UnreadableError(f"{name} is not a list")
        return tuple(typed(inner[0], item, f"{name}[{index}]") for index, item in enumerate(value))
    right = (
        any(_is(type(choice), value) and choice == value for choice in inner) if inner else _is(kind, value)
    )
    if not right:
        raise UnreadableError(f"{name} cannot be {json.dumps(value)[:40]}")
    return value


def shaped(kind: type[T], table: Mapping[str, Any], **ours: Any) -> T:
    """Make a data class of a JSON table, checking the types of its values one level deep.

    Faster than `typed`, for thousands of tables, and for texts that may contain a NUL.

    Args:
        kind: the data class.
        table: parsed JSON.
        ours: fields that are not from the table.

    Raises:
        UnreadableError: a value has another type; the error names the key.
        KeyError, TypeError: a key is unknown, or missing.
    """
    shapes = _shapes(cast("Hashable", kind))
    for name, value in table.items():
        types, inner = shapes[name]
        rows = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        # `type`, not `isinstance`: True is an int, and would pass for a size.
        if type(value) not in types or (inner and any(type(item) not in inner for item in rows)):
            raise UnreadableError(f"{name} cannot be {json.dumps(value)[:40]}")
    return kind(**table, **ours)


@cache
def _shapes(kind: Hashable) -> dict[str, tuple[frozenset[Any], frozenset[Any]]]:
    return {name: _shape(hint) for name, hint in get_type_hints(kind).items()}


def _shape(hint: Any) -> tuple[frozenset[Any], frozenset[Any]]:
    """Return the Python types of a value, and of its items; no item types if they may be anything."""
    origin, inner = get_origin(hint), get_args(hint)
    if not inner:
        return frozenset({hint, int} if hint is float else {hint}), frozenset()
    if origin is UnionType:
        shapes = [_shape(choice) for choice in inner]
        return frozenset().union(*(types for types, _ in shapes)), frozenset().union(
            *(items for _, items in shapes)
        )
    if origin is Literal:
        return frozenset(map(type, inner)), frozenset()
    content = inner[1] if origin is Mapping else inner[0]
    within = frozenset() if content is Any else _shape(content)[0]
    return frozenset({dict} if origin is Mapping else {list}), within


def place_in(name: str) -> str:
    """Return a relative path from a list of files, checked to stay inside its folder.

    Raises:
        UnreadableError: it leads out of the folder, or is not a valid path.
    """
    parts = name.split("/")
    if not name or name.startswith("/") or ".." in parts or "\0" in name or not _is_text(name):
        raise UnreadableError(f"{name[:80]!r} is not a path inside this folder")
    return name


def path_in(folder: Path, name: str) -> Path:
    """Return the path of a file that a list in a folder names, checked to lie in that folder.

    Raises:
        UnreadableError: the name leads out of the folder, or a link does.
    """
    path = folder / place_in(name)
    # The folder itself may be reached through links, which whoever named it chose. A link inside of it was
    # put there by whoever filled the folder, and could lead to any file that the user can read.
    places = itertools.accumulate(name.split("/"), os.path.join, initial=str(folder))
    # Only a link needs the real path, which takes several times as long: dumps have thousands of files.
    linked = any(os.path.islink(place) for place in itertools.islice(places, 1, None))  # noqa: PTH114
    if linked and not real(path).is_relative_to(real(folder)):
        raise UnreadableError(f"{name[:80]!r} is a link out of this folder")
    return path


def _is_text(name: str) -> bool:
    try:
        os.fsencode(name)
    except UnicodeEncodeError:
        return False
    return True


def _is(kind: Any, value: Any) -> bool:
    """Return whether a value has a type; numbers must fit 64 bits, and texts must be valid in paths."""
    if isinstance(value, str):
        return kind is str and "\0" not in value
    if isinstance(value, int) and not isinstance(value, bool):
        # A number beyond 64 bits ends in an OverflowError somewhere: in `os.utime`, in
        # `struct.pack`, in SQLite.
        return kind is int and abs(value) < 1 << 63
    return value is None if kind is NoneType else type(value) is kind


def _dataclass_from(kind: type[Any], value: Any, name: str) -> Any:
    if not isinstance(value, dict):
        raise UnreadableError(f"{name} is not a table")
    hints = get_type_hints(kind)
    values = {}
    for field in fields(kind):
        # Keys that no field has are passed over: a later version of the tool may have added them.
        if field.name in value:
            inside = field.name if name == "it" else f"{name}.{field.name}"
            values[field.name] = typed(hints[field.name], value[field.name], inside)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise UnreadableError(f"{name} has no {field.name}")
    return kind(**values)


def _shallow(value: Any) -> Any:
    # By levels and not by recursion: the check must not be what fails.
    level = [value]
    for _ in range(DEPTH):
        # Only what can be nested goes on to the next level: most of a document are texts and numbers.
        level = [
            child
            for nest in level
            for child in (nest.values() if isinstance(nest, dict) else nest if isinstance(nest, list) else ())
            if isinstance(child, (dict, list))
        ]
        if not level:
            return value
    raise UnreadableError("nested too deeply")
