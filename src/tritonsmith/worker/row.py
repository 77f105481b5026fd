"""The manifest's row of a point: its result, the compiler's message, and the end of its log."""

from __future__ import annotations

import inspect
import json
import os
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .json_types import Table
    from .load import LoadedKernel

LONGEST_LOG = 100000  # characters of standard error that a result carries


def failed(status: str, error: str, began: float) -> Table:
    """The row of a point that did not compile."""
    return {
        "status": status,
        "seconds": time.monotonic() - began,
        "stages": {},
        "metadata": {},
        "error": error,
    }


def finished(request: Table, point: Table, result: Table) -> Table:
    """A row with all fields of the manifest."""
    log = text_of(os.path.join(request["output"], point["id"], "log"))
    row = {key: point[key] for key in ("id", "signature", "constexprs", "hints", "options")}
    row["target"] = ":".join(map(str, point["target"]))
    row.update(result)
    if result["status"] != "ok":
        printed = log.partition("Traceback (most recent call last)")[0].splitlines()
        said = [line.strip() for line in printed if "error:" in line or "Assertion" in line]
        fresh = [line for line in dict.fromkeys(said) if line not in row["error"]]
        row["error"] = "\n".join([row["error"], *fresh[:5]])
    row["log"] = log[-LONGEST_LOG:]
    if result["status"] == "ok":
        path = os.path.join(request["output"], point["id"], "metadata.json")
        with open(path, "w", encoding="utf-8") as file:
            json.dump(row["metadata"], file, indent=2)
    return row


def text_of(path: str, most: int = 4 * LONGEST_LOG) -> str:
    """The last bytes of a file, from the start of a line; empty if the file cannot be read.

    A log with a dump of each pass may have a gigabyte.
    """
    try:
        with open(path, "rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(size - most, 0))
            raw = file.read()
    except OSError:
        return ""
    text = raw.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    return text if size <= most else text.partition("\n")[2] or text


def told(error: BaseException | None, loaded: LoadedKernel | None) -> str:
    """The compiler's own message, and its position in the file."""
    text = ""
    for _ in range(20):
        if error is None:
            break
        part = str(error).strip()
        node = getattr(error, "node", None)
        if loaded and node is not None and getattr(error, "src", None) == getattr(loaded.fn, "src", ""):
            part += f"\nat {place_of(loaded.fn.fn, node.lineno)}"
        if not part or part not in text:
            known = type(error).__name__.endswith("CompilationError")
            text += f"{part}\n" if known else f"{type(error).__name__}: {part}\n"
        error = error.__cause__
    return text.strip()


def place_of(function: Any, number: int) -> str:
    """FILE:LINE of a line of a function; Triton counts lines from the `def`."""
    lines, first = inspect.getsourcelines(function)
    head = next((index for index, line in enumerate(lines) if line.strip().startswith("def ")), 0)
    return f"{inspect.getsourcefile(function)}:{first + head + number - 1}"
