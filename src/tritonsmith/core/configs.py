"""Read `configs/`: facts about the outside world, as TOML with their sources."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

_PACKAGE = Path(__file__).parents[1]
_REPOSITORY = _PACKAGE.parents[1]


def data_dir(name: str) -> Path:
    """Return the folder of data files that ship with the tool: `configs`, `envs` or `docs`.

    In a checkout (and in an editable install of one) it is the top-level folder of that name; in a
    wheel it is inside the package.
    """
    return _shipped(_REPOSITORY, name)


def load(name: str) -> dict[str, Any]:
    """Return the parsed table of `configs/NAME.toml`; treat it as read-only.

    Raises:
        FileNotFoundError: no such file ships with the tool, which is a bug.
    """
    return _parsed(data_dir("configs"), name)


def page(name: str) -> str:
    """Return the Markdown of `docs/NAME.md`, one of the pages that ship with the tool (pyproject.toml)."""
    return (data_dir("docs") / f"{name}.md").read_text(encoding="utf-8")


def as_dataclass(kind: type[T], row: Mapping[str, Any]) -> T:
    """Make a data class of a table: lists become tuples, and keys without a field are left out.

    Raises:
        TypeError: a key is missing, which is a bug.
    """
    values = {
        key.replace("-", "_"): tuple(value) if isinstance(value, list) else value
        for key, value in row.items()
    }
    return kind(**{name: values[name] for name in kind.__dataclass_fields__ if name in values})


# Cached, as `_parsed` is, since both are called in innermost loops, such as one over the keys of a YAML file.
@cache
def _shipped(repository: Path, name: str) -> Path:
    in_checkout = repository / name
    return in_checkout if in_checkout.is_dir() else _PACKAGE / "_data" / name


@cache
def _parsed(folder: Path, name: str) -> dict[str, Any]:
    with (folder / f"{name}.toml").open("rb") as file:
        return tomllib.load(file)
