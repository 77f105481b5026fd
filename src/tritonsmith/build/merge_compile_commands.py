"""Merge compilation databases: `python -m tritonsmith.build.merge_compile_commands --output OUT IN...`.

clangd reads one database per tree; with LLVM's commands in Triton's, it jumps from a Triton pass into MLIR.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from pathlib import Path
from typing import Any

from tritonsmith.core.plan import files

_PATH = r"""("[^"]*"|(?:\\.|[^\s\\])+)"""
_PRECOMPILED = re.compile(rf" -Winvalid-pch -Xclang -include-pch -Xclang {_PATH}")
_INCLUDED = re.compile(rf" -Xclang -include -Xclang {_PATH}")
_INJECTED = "/tritonsmith_pch_"


def merge(databases: list[list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Merge parsed `compile_commands.json` files; the first entry of a file wins."""
    merged: dict[str, list[dict[str, Any]]] = {}
    for database in databases:
        fresh: dict[str, list[dict[str, Any]]] = {}
        for entry in database:
            # The first database is Triton's own: its flags for a source win over LLVM's.
            path = os.path.normpath(Path(entry["directory"], entry["file"]))
            if path not in merged:
                fresh.setdefault(path, []).append(_readable(entry))
        merged |= fresh
    return [entry for entries in merged.values() for entry in entries]


def _readable(entry: dict[str, Any]) -> dict[str, Any]:
    # clangd reads only precompiled headers of its own version. The headers that make up a project's own one
    # are included one by one instead; those of an injected one are not, so that missing includes show.
    command = entry.get("command", "")
    plain = _INCLUDED.sub(
        lambda match: "" if _INJECTED in match[1] else match[0], _PRECOMPILED.sub("", command)
    )
    return entry if plain == command else {**entry, "command": plain}


def main(argv: list[str] | None = None) -> int:
    """Run the command line: print how many entries were written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("databases", type=Path, nargs="+")
    arguments = parser.parse_args(argv)
    parsed = [json.loads(path.read_text(encoding="utf-8")) for path in arguments.databases]
    merged = merge(parsed)
    files.write_atomically(arguments.output, json.dumps(merged, indent=1) + "\n")
    print(f"{len(merged)} commands from {len(parsed)} databases")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
