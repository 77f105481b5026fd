"""Read Jupyter notebooks as kernel files: write their code cells as Python, and report lines by cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tritonsmith.core import untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import Plan, Write, digest

SUFFIX = ".ipynb"
_PLACE = "notebooks"
_HEAD, _CELL = "# made from ", "# %% cell "
_PYTHON_CELLS = ("%%time", "%%timeit", "%%capture", "%%prun", "%%triton_stages")  # whose body is Python
_MAGIC = re.compile(r"(\s*)((?:[\w., ]+=\s*)?[%!].*|\?.*|.*\?)", re.DOTALL)
_MADE = re.compile(rf"(/[^\n:'\"]*?/{_PLACE}/[0-9a-f]{{16}}/[^\n:'\"]*?\.py)(?::(\d+)|\", line (\d+))?")
_PARSED = 32 << 20  # characters, until the magics of a notebook are found: each one costs a look at its cell
_LINE = re.compile(r"(?<!, )\bline (\d+)\b")  # but not that of `cell 2, line 3`


def as_python(file: Path) -> Path:
    """Return the Python file of a notebook, in the workspace; any other file unchanged.

    Raises:
        FactError: it cannot be read, or is not a notebook with Python.
    """
    if file.suffix != SUFFIX:
        return file
    return written(_cells(file), str(file), file.parent, file.stem)


def written(cells: Iterable[str], origin: str, folder: Path, stem: str) -> Path:
    """Write cells as a Python file in the workspace.

    Args:
        cells: their texts, in order.
        origin: name of the notebook in messages.
        folder: folder of modules that cells import.
        stem: of the file's name.

    Raises:
        FactError: a cell cannot be written as Python.
    """
    lines = [f"{_HEAD}{origin}", f"import sys; sys.path.insert(0, {str(folder)!r})"]
    left = _PARSED
    for number, cell in enumerate(cells, 1):
        try:
            # JSON can carry half of a surrogate pair, UTF-8 cannot.
            cell.encode()
        except UnicodeEncodeError as error:
            why = f"cell {number}: half of a surrogate pair: {error.object[error.start]!r}"
            raise FactError(
                "this notebook has text that cannot be written to a file", where=origin, why=why
            ) from None
        python, left = _without_magics(cell, left)
        if left < 0:
            hints = ["put them in a cell of their own, or remove them"]
            what = f"cell {number} has too many lines that only IPython understands"
            raise FactError(what, where=origin, hints=hints)
        lines += (f"{_CELL}{number}", python)
    text = "\n".join((*lines, ""))
    space = workspace.default()
    # By its content: an older file stays, since manifests and tracebacks refer to its lines.
    place = space.root / "kernels" / _PLACE / digest(text) / f"{stem}.py"
    if not place.is_file():
        space.claim()
        space.run(Plan("notebook", (Write(place, text, phase="notebook"),)), "notebook", quiet=True)
    return place


def told(text: str) -> str:
    """Replace references to a generated file in a message by the notebook's name, cell and line."""
    for generated in dict.fromkeys(match[1] for match in _MADE.finditer(text)):
        try:
            lines = untrusted.read_text(Path(generated)).splitlines()
        except OSError:
            continue
        if lines and lines[0].startswith(_HEAD):
            text = _MADE.sub(partial(_told, generated, lines), text)
            text = _LINE.sub(partial(_line_told, lines), text)
    return text


def _told(name: str, lines: list[str], match: re.Match[str]) -> str:
    if match[1] != name:
        return match[0]
    number = match[2] or match[3]
    notebook = lines[0].removeprefix(_HEAD)
    return f"{notebook}, {_place(lines, int(number))}" if number else notebook


def _line_told(lines: list[str], match: re.Match[str]) -> str:
    return _place(lines, int(match[1]))


def _place(lines: list[str], number: int) -> str:
    """Return the place of a line (counted from 1) as `cell 2, line 3`."""
    for index in range(min(number, len(lines)) - 1, 0, -1):
        if lines[index].startswith(_CELL):
            return f"cell {lines[index].removeprefix(_CELL)}, line {number - index - 1}"
    return f"line {number}"


def _cells(file: Path) -> Iterator[str]:
    """Yield the texts of the code cells."""
    try:
        content = untrusted.read_json(file)
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "python")
        cells: list[dict[str, Any]] = content["cells"]
        texts = [
            source if isinstance(source, str) else "".join(source)
            for source in (cell["source"] for cell in cells if cell["cell_type"] == "code")
        ]
    except FileNotFoundError:
        raise FactError("no such file", where=file) from None
    except OSError as error:
        raise FactError("cannot read this notebook", where=file, why=error.strerror) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        hints = ["older formats: jupyter nbconvert --to notebook --nbformat 4"]
        raise FactError(
            "this is not a notebook of format 4", where=file, why=repr(error), hints=hints
        ) from None
    if language != "python":
        raise FactError(f"the cells of this notebook are {json.dumps(language)}, not Python", where=file)
    yield from texts


def _without_magics(cell: str, left: int) -> tuple[str, int]:
    """Comment out the lines of a cell that only IPython can parse; the number of lines stays the same.

    Args:
        cell: its text.
        left: number of characters that may still be parsed.

    Returns:
        The text, and the characters left; negative if there were too few.
    """
    lines = cell.split("\n")
    if lines[0].startswith("%%"):
        if not lines[0].startswith(_PYTHON_CELLS):
            return "\n".join(f"# {line}" for line in lines), left
        lines[0] = f"# {lines[0]}"
    # Python's parser reports one error at a time, so each magic costs another parse of the cell.
    while (left := left - len(cell)) >= 0:
        try:
            untrusted.python_tree("\n".join(lines))
        except SyntaxError as error:
            number = (error.lineno or 0) - 1
            match = _MAGIC.fullmatch(lines[number]) if 0 <= number < len(lines) else None
            if not match:
                break
            lines[number] = f"{match[1]}pass  # {match[2]}"
            for below in range(number + 1, len(lines)):  # after a whole statement no line begins like that
                if not lines[below].startswith((f"{match[1]}%", f"{match[1]}!")):
                    break
                lines[below] = f"{match[1]}pass  # {lines[below].lstrip()}"
        except ValueError:  # nested too deeply
            break
        else:
            break
    return "\n".join(lines), left
