"""Two people who share compiles: a small build, its env file, and what the doctor says of it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.harness import CMAKE, LLVM, Smith, plant, ready, require_llvm

PARTS = 8  # compiles of the small build
NINJA = CMAKE.with_name("ninja")
_LIST = " ".join(("amd.c", *(f"part{number}.cpp" for number in range(PARTS))))
_PART = """\
#include <map>
#include <string>
std::map<std::string, int> part{number}(const std::string &text) {{
  return {{{{text, {number}}}}};
}}
"""
CHANGES = {
    "third_party/amd/CMakeLists.txt": f"add_library(mini_amd STATIC {_LIST})\n",
    **{f"third_party/amd/part{number}.cpp": _PART.format(number=number) for number in range(PARTS)},
}
ASKED = (
    "build-triton",
    "--debug",
    "--llvm-dir",
    LLVM,
    "--backends",
    "amd",
    "--target",
    "mini_amd",
    "--jobs",
    "1",
)


def people(tmp_path_factory: pytest.TempPathFactory) -> tuple[Smith, Smith]:
    """Two people: each with a workspace and a checkout of their own, of other names."""
    require_llvm()
    found = []
    for name in ("ann", "bob the second"):
        root = tmp_path_factory.mktemp(name)
        smith = Smith(root, cwd=plant("mini_triton", root / f"triton of {name}", CHANGES))
        found.append(ready(smith, tmp_path_factory, "team"))
    return found[0], found[1]


def env_file(smith: Smith, name: str, cache: str) -> Path:
    """Write an env file."""
    path = smith.root / f"{name}.toml"
    path.write_text(f"[cache]\n{cache}", encoding="utf-8")
    return path


def findings(smith: Smith) -> dict[str, dict[str, str]]:
    """What the doctor says of its tools, by check."""
    told = smith("doctor", "--env", smith.root / "team.toml", "--only", "tools", "--json")
    return {row["id"]: row for row in json.loads(told.out)["findings"]}


def wait_until(condition: Callable[[], bool]) -> None:
    """Wait until something can be seen."""
    until = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < until, "that was never seen"
        time.sleep(0.02)
