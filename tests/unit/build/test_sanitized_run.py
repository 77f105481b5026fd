"""A program under a sanitizer: what is refused, and the first error of its reports."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tritonsmith.build import sanitized_run
from tritonsmith.core import configs
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import SmithError

pytestmark = pytest.mark.unit

OVERFLOW = """=================================================================
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x52 at pc 0x7e
WRITE of size 1 at 0x52 thread T0
    #0 0x7e in overflow /x/planted.c:7:12
    #1 0x7e in main /x/main.c:3

0x52 is located 0 bytes after 8-byte region
    #0 0x7e in malloc
"""
RACE = "==================\nWARNING: ThreadSanitizer: data race (pid=7)\n  Write of size 4\n    #0 f a.c:1\n"
SHIFT = "a.cpp:3:5: runtime error: shift exponent 40 is too large\n    #0 0x1 in f a.cpp:3:5\n"


def refused(tmp_path: Path, built: str, *argv: str, sanitizer: str = "address") -> SmithError:
    """Why an environment that was built so cannot run it."""
    env = EnvDir(tmp_path / "envs" / "e", tmp_path)
    receipt = env.receipt("build-triton")
    receipt.parent.mkdir(parents=True)
    content = {"settings": {"triton.sanitizer": built}, "compiler": {"path": "/no/clang++"}}
    receipt.write_text(receipts.render("build-triton", content), encoding="utf-8")
    with pytest.raises(SmithError) as caught:
        sanitized_run.prepare(argv, sanitizer, env, Workspace(tmp_path))
    return caught.value


@pytest.mark.parametrize(("built", "why"), [("", "without a sanitizer"), ("thread", "the sanitizer thread")])
def test_a_build_of_another_kind(tmp_path: Path, built: str, why: str) -> None:
    error = refused(tmp_path, built, "python")
    assert why in str(error.why)
    assert "build-triton --env e --sanitizer address" in error.hints[0]


def test_no_interpreter_no_program_no_such_sanitizer(tmp_path: Path) -> None:
    assert "no Python interpreter" in refused(tmp_path / "a", "address", "python").what
    assert "no program" in refused(tmp_path / "b", "address").what
    assert "'memory'" in refused(tmp_path / "c", "address", "python", sanitizer="memory").what


@pytest.mark.parametrize(
    ("sanitizer", "text", "head", "last"),
    [
        ("address", OVERFLOW, "AddressSanitizer: heap-buffer-overflow on address", "main.c:3"),
        ("thread", RACE, "ThreadSanitizer: data race", "f a.c:1"),
        ("undefined", SHIFT, "a.cpp:3:5: runtime error: shift exponent 40", "a.cpp:3:5"),
    ],
)
def test_the_first_error(tmp_path: Path, sanitizer: str, text: str, head: str, last: str) -> None:
    assert sanitized_run.first_error(tmp_path, sanitizer) == ("", [])
    for number, content in enumerate((text, text.replace("7", "8"))):
        report = tmp_path / f"report.{9 - number}"
        report.write_text(content, encoding="utf-8")
        os.utime(report, (number, number))
    found, lines = sanitized_run.first_error(tmp_path, sanitizer)
    assert found.startswith(head)
    assert lines[-1].endswith(last)


def test_rows_say_why() -> None:
    for name, row in configs.load("sanitizers").items():
        if name not in ("schema", "report", "gpu"):
            rows = [*row.get("options", ()), *row.get("suppressions", {}).get("rows", ())]
            assert all(one["why"] for one in rows), name
            assert set(row["runtime"]) == {"clang", "gcc"}, name
