"""Find the file of a module, as an interpreter would import it, without running it."""

from __future__ import annotations

import json
from pathlib import Path

from tritonsmith.compiler.describe import provided
from tritonsmith.core.errors import FactError
from tritonsmith.core.process import query

# A top-level package is searched by all finders, since that of an editable install may know it; its
# submodules are searched in the package's folder only, because `find_spec` would import the parents.
_SEARCH = """
import importlib.machinery, importlib.util, json, sys
name, *parts = sys.argv[1].split(".")
spec = importlib.util.find_spec(name)
for part in parts:
    name += "." + part
    inside = spec and spec.submodule_search_locations
    spec = importlib.machinery.PathFinder.find_spec(name, list(inside)) if inside else None
    if spec is None:
        break
print(json.dumps({"name": name, "file": spec and spec.origin}))
"""


def file_of(module: str, python: Path) -> Path:
    """Return the file of a module.

    Args:
        module: its dotted name.
        python: the interpreter that would import it, from the current folder.

    Raises:
        FactError: there is none, or it is not written in Python.
    """
    answer = query((str(python), "-c", _SEARCH, module))
    try:
        location = json.loads(answer.out.splitlines()[-1]) if answer else {}
    except (ValueError, IndexError):
        location = {}
    if not location:
        why = answer.err[-2000:] if answer else f"{python} did not respond in time"
        raise FactError("cannot search for the module", where=module, why=why)
    if not location["file"]:
        package = module.partition(".")[0]
        hints = ["give its file instead", *(provided(package) if location["name"] == package else ())]
        raise FactError(f"no module {location['name']}", where=module, why=f"for {python}", hints=hints)
    if not location["file"].endswith(".py"):
        raise FactError("this module is not written in Python", where=location["file"])
    return Path(location["file"])
