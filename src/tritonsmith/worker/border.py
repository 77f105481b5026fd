"""Carry requests and rows across the border between the tool and the worker, as JSON.

`request_of`, `row_of` and `text_of` are the only ways across. They refuse unknown keys, missing keys and
values of another type: a mistake of one side ends at the border, with the name of the field. `decoded` and
`encoded` convert the values of a kernel, which JSON carries too, from and to Triton's.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import sys
from typing import TYPE_CHECKING, Any, TypeVar

from .stubs import name_of

if TYPE_CHECKING:  # Python 3.8 cannot evaluate this
    from collections.abc import Callable
    from dataclasses import dataclass

    from .foreign import JsonValue

    Table = dict[str, Any]
else:
    from .records import dataclass

Shape = TypeVar("Shape")

EXIT_REFUSED = 2

_REFUSED = "refused"  # the only key of a line that is a refusal
_PLAIN = {"str": (str,), "int": (int,), "float": (float, int), "bool": (bool,), "None": (type(None),)}


class BorderError(ValueError):
    """A text does not have the shape that both sides agreed on."""


@dataclass(frozen=True)
class WorkerRefusal:
    """The reason why a whole request cannot be served.

    Attributes:
        kind: `kernel`, `option`, `import`, `file`, `triton`, `unusable` ...
        what: the whole sentence.
        why: the place in the user's file, or the error of another program.
        name: the name of the thing that does not exist.
        names: the names of those that do.
        parameters: the kernel's parameters, where an option is refused.
        module: the name of a module that cannot be imported.
        package: the package of a stand-in.
        reads: the files that were read until then: see `messages.CompileHead`.
    """

    kind: str
    what: str
    why: str = ""
    name: str = ""
    names: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    module: str = ""
    package: str = ""
    reads: dict[str, str] = dataclasses.field(default_factory=dict)


class RequestRefusedError(Exception):
    """The whole request cannot be served: raised by the worker, and by the tool when it reads the refusal."""

    def __init__(self, kind: str, what: str, **more: Any) -> None:
        super().__init__(what)
        self.refusal = WorkerRefusal(kind, what, **more)


def unknown(what: str, stood: str = "", why: str = "") -> RequestRefusedError:
    """Return the error about an unknown value.

    Args:
        what: the whole sentence.
        stood: the stand-in, if any.
        why: the place in the file.
    """
    return RequestRefusedError("unknown", what, why=why, package=stood.partition(".")[0])


def text_of(value: object, indent: int | None = None) -> str:
    """Return a request or a row as JSON; a row has to be one line."""
    return json.dumps(_plain(value), indent=indent)


def refusal_text(refusal: WorkerRefusal) -> str:
    """Return the line that is written instead of the rows."""
    return json.dumps({_REFUSED: _plain(refusal)})


def request_of(kind: type[Shape], text: str | bytes) -> Shape:
    """Parse a request.

    Raises:
        BorderError: it has another shape.
    """
    try:
        table = json.loads(text)
    except ValueError as error:
        raise BorderError(f"{kind.__name__} is not JSON: {error}") from None
    return _shaped(kind, table)


def read_request(kind: type[Shape], path: str) -> Shape:
    """Read a request from a file.

    Raises:
        BorderError: it has another shape.
    """
    with open(path, encoding="utf-8") as file:
        return request_of(kind, file.read())


def row_of(kind: type[Shape], text: str | bytes) -> Shape:
    """Parse a line into a row.

    Raises:
        RequestRefusedError: the line is a refusal.
        BorderError: it has another shape.
    """
    try:
        table = json.loads(text)
    except ValueError as error:
        raise BorderError(f"{kind.__name__} is not JSON: {error}") from None
    if isinstance(table, dict) and set(table) == {_REFUSED}:
        raise RequestRefusedError(**vars(_shaped(WorkerRefusal, table[_REFUSED])))
    return _shaped(kind, table)


def _plain(value: object) -> Any:
    """Return a value as JSON data."""
    # `dataclasses.asdict` does the same, but copies each leaf: texts of kernels are large.
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return value


def _shaped(kind: type[Shape], table: object, where: str = "") -> Shape:
    name = kind.__name__
    if not isinstance(table, dict):
        raise BorderError(f"{where or name} is a {type(table).__name__}, not an object")
    # Unknown keys are errors as well: a field that one side renamed would otherwise be dropped in silence.
    readers, required = _fields(kind)  # type: ignore[arg-type] # a class
    for key in table:
        if key not in readers:
            raise BorderError(f"{name} has no field {key!r}")
    for key in required:
        if key not in table:
            raise BorderError(f"{name} lacks the field {key!r}")
    return kind(**{key: readers[key](value, f"{name}.{key}") for key, value in table.items()})


@functools.lru_cache(maxsize=None)
def _fields(kind: type[Any]) -> tuple[dict[str, Callable[[object, str], Any]], list[str]]:
    """Return the reader of each field of a class, and the names of the fields without a default."""
    fields = dataclasses.fields(kind)
    required = [
        field.name
        for field in fields
        if field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
    ]
    return {field.name: _reader(str(field.type), kind.__module__) for field in fields}, required


@functools.lru_cache(maxsize=None)
def _reader(annotation: str, module: str) -> Callable[[object, str], Any]:
    """Return the function that converts JSON data to an annotated type.

    Args:
        annotation: the text of a type: `tuple[PointRequest, ...]`.
        module: the name of the module whose classes it names.
    """
    # As a text: Python 3.8 can evaluate neither `tuple[str, ...]` (PEP 585) nor `str | None` (PEP 604), so
    # `typing` cannot resolve the annotations of these classes there.
    if annotation.endswith("]"):
        return _collection_reader(annotation, module)
    if " | " in annotation:
        choices = annotation.split(" | ")
        plain = [name for name in choices if name in _PLAIN]
        read = _reader(next((name for name in choices if name not in _PLAIN), plain[0]), module)
        return functools.partial(_read_union, plain, read)
    if annotation == "Any":
        return lambda value, _: value
    if annotation in _PLAIN:
        return functools.partial(_read_plain, annotation)
    return functools.partial(_read_shape, vars(sys.modules[module])[annotation])


def _collection_reader(annotation: str, module: str) -> Callable[[object, str], Any]:
    """Return the reader of `dict[str, X]`, `tuple[X, ...]` or `tuple[X, Y]`."""
    head, _, inner = annotation[:-1].partition("[")
    if head == "dict":
        return functools.partial(_read_dict, _reader(inner[len("str, ") :], module))
    if inner.endswith(", ..."):
        return functools.partial(_read_tuple, _reader(inner[: -len(", ...")], module))
    # Commas within brackets would need a parser. A record of records is a class here, which has names as
    # well.
    return functools.partial(_read_record, [_reader(part, module) for part in inner.split(", ")])


def _is_plain(annotation: str, value: object) -> bool:
    # True and False are numbers for Python, and never what an `int` of ours stands for.
    return isinstance(value, _PLAIN[annotation]) and (annotation == "bool" or not isinstance(value, bool))


def _read_plain(annotation: str, value: object, where: str) -> Any:
    if not _is_plain(annotation, value):
        raise BorderError(f"{where} is {json.dumps(value)[:40]}, not {annotation}")
    return value


def _read_union(plain: list[str], read: Callable[[object, str], Any], value: object, where: str) -> Any:
    # Plain types first: they cannot be mistaken for an object, and the other choice raises an error for all
    # it does not read.
    return value if any(_is_plain(name, value) for name in plain) else read(value, where)


def _read_shape(kind: type[Any], value: object, where: str) -> Any:
    return _shaped(kind, value, where)


def _read_dict(read: Callable[[object, str], Any], value: object, where: str) -> Any:
    if not isinstance(value, dict):
        raise BorderError(f"{where} is a {type(value).__name__}, not an object")
    return {name: read(part, f"{where}[{name!r}]") for name, part in value.items()}


def _read_tuple(read: Callable[[object, str], Any], value: object, where: str) -> Any:
    if not isinstance(value, list):
        raise BorderError(f"{where} is a {type(value).__name__}, not a list")
    return tuple([read(part, f"{where}[{number}]") for number, part in enumerate(value)])


def _read_record(readers: list[Callable[[object, str], Any]], value: object, where: str) -> Any:
    if not isinstance(value, list) or len(value) != len(readers):
        raise BorderError(f"{where} is not a list of {len(readers)}")
    return tuple([read(part, where) for read, part in zip(readers, value)])


def decoded(value: JsonValue) -> Any:
    """Convert a value of JSON for Triton: lists become tuples, {"dtype": "float16"} becomes tl.float16."""
    if isinstance(value, list):
        return tuple(map(decoded, value))
    if isinstance(value, dict):
        import triton.language as tl

        return getattr(tl, value["dtype"])
    return value


def encoded(value: JsonValue) -> Any:
    """Convert a value of Triton to JSON: the inverse of `decoded`.

    Raises:
        RequestRefusedError: the value is a stand-in.
        TypeError: JSON cannot represent the value.
    """
    # First of all: a stand-in answers to any attribute, so the JSON made from one would be a guess.
    if name_of(value):
        stood = name_of(value)
        raise unknown(
            f"a value of the kernel is {stood}, but {stood.partition('.')[0]} is not installed", stood
        )
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, (list, tuple)):
        return [encoded(part) for part in value]
    import triton.language as tl

    for name, known in vars(tl).items():
        if known is value and isinstance(known, tl.dtype):
            return {"dtype": name}
    raise TypeError(f"a {type(value).__name__} cannot be written as JSON")


def nested(kind: str) -> Any:
    """Parse `(i32,*fp32)` into a tuple of types; a plain type is returned as it is."""
    # A comma separates types only at depth 1: `tensordesc<fp16[128,64]>` has commas of its own.
    if not kind.startswith("("):
        return kind
    parts, depth, begin = [], 0, 1
    for position, char in enumerate(kind):
        depth += (char in "([<") - (char in ")]>")
        if (char == "," and depth == 1) or depth == 0:
            parts.append(kind[begin:position])
            begin = position + 1
    return tuple(nested(part) for part in parts if part)
