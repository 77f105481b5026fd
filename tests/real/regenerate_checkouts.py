"""Reads the facts of upstream's commits into tests/unit/build/golden/checkouts.json.

Run it when `facts/checkout.py` reads more, or when a version comes in:

    .venv/bin/python tests/real/regenerate_checkouts.py PATH_OF_A_CLONE

The clone needs upstream's history; nothing in it is changed. Only facts are kept, no upstream file.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tritonsmith.facts import checkout
from tritonsmith.facts.checkout import TritonCheckout

STORE = Path(__file__).parents[1] / "unit" / "build" / "golden" / "checkouts.json"

# Name to commit. From 3.5 on it is main at the version bump; setup.py of 3.1 to 3.3 tells an older version.
COMMITS = {
    "2.0": "2cb7da7259df986dec9f5e770daaa7e6c1050001",
    "2.1": "e6216047b8b0aef1fe8da6ca8667a3ad0a016411",
    "2.2": "54bba975c5cbecee8bf143d95719232de45c1b09",
    "3.1": "513f38c47a901981dbf265f5da74b41803ef0d64",
    "2024-08-29": "46550ab18e8f7314107cf591b9cf902b290fd45d",
    "3.2": "152ef2deb8852d5c84f9ffba217b3a7c8f398c5f",
    "3.3": "523a1b235b213bc192f2d5a8999add5bf2d0fea5",
    "3.4": "5389ed797016010543ef1c7b88efc50f7521cb4e",
    "3.5": "abce3c88f05e8dba40bfacf68acf0ee3869afb5e",
    "3.6": "004d7f5f58c2299a714e20c214893d4907dc8509",
    "2026-01-29": "054b9dfcba5b58b9a7325ce11cbef3a7441882ef",
    "3.7": "6d2e38bfe1c96f7cacaf85661fe28d73473ca133",
    "3.8": "5838701feb5ce8131137b541460058495b23b154",
    "main": "63068fcc274cd152fb34abe1bcab10e5078b0df5",
}
# 2.0 has a ptxas in git, which snapshots of big repositories leave out; nothing here reads it.
_PATTERNS = ("/*", "!/python/triton/third_party/cuda/bin/")


class History:
    """A clone of a clone, which shares its objects and leaves its folder alone.

    Args:
        source: any clone with upstream's history.
        folder: where the worktrees go.
    """

    def __init__(self, source: Path, folder: Path) -> None:
        self._folder = folder
        self.clone = folder / "clone"
        _git("clone", "--quiet", "--shared", "--no-checkout", str(source), str(self.clone))

    def has(self, commit: str) -> bool:
        """Whether the source has that commit."""
        argv = ("git", "-C", str(self.clone), "cat-file", "-e", f"{commit}^{{commit}}")
        return subprocess.run(argv, capture_output=True, check=False).returncode == 0

    def tree(self, commit: str) -> Path:
        """A worktree of that commit, made on the first call."""
        path = self._folder / commit[:10]
        if not path.is_dir():
            clone = ("-C", str(self.clone))
            _git(*clone, "worktree", "add", "--quiet", "--detach", "--no-checkout", str(path), commit)
            _git("-C", str(path), "sparse-checkout", "set", "--no-cone", *_PATTERNS)
            _git("-C", str(path), "checkout", "--quiet", "--detach", commit)
        return path

    def tracked(self, commit: str, path: Path) -> list[str]:
        """Files that git tracks at or below a path of the worktree."""
        return _git("-C", str(self.tree(commit)), "ls-files", "--", str(path)).splitlines()


def as_json(read: TritonCheckout) -> dict[str, Any]:
    """The facts of a checkout, its place on disk aside."""
    pins = [
        {
            "commit": pin.commit,
            "file": pin.file,
            "role": pin.role,
            "build": pin.build,
            "sha256": dict(pin.sha256),
        }
        for pin in read.pins
    ]
    return {
        "commit": read.commit,
        "committed": read.committed,
        "version": read.version,
        "python": list(read.python),
        "requires": list(read.requires),
        "pins": pins,
        "nvidia": dict(read.nvidia),
        "json_version": read.json_version,
        "features": sorted(read.features),
        "options": sorted(read.options),
    }


def render(facts: dict[str, dict[str, Any]]) -> str:
    """JSON with one fact a line."""
    rows = []
    for name, read in facts.items():
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in read.items()]
        rows.append(f" {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n }")
    return "{\n" + ",\n".join(rows) + "\n}\n"


def _git(*arguments: str) -> str:
    done = subprocess.run(("git", *arguments), capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"git {' '.join(arguments)}\n{done.stderr}")
    return done.stdout


def main() -> int:
    """Command line: the path of a clone."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(sys.argv[1]).absolute(), Path(folder))
        facts = {
            name: as_json(checkout.read(history.tree(commit)))
            for name, commit in COMMITS.items()
            if history.has(commit)
        }
    missing = sorted(COMMITS.keys() - facts.keys())
    if missing:
        print(f"this clone lacks {', '.join(missing)}; nothing was written", file=sys.stderr)
        return 1
    STORE.write_text(render(facts), encoding="utf-8")
    print(f"{len(facts)} checkouts in {STORE}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
