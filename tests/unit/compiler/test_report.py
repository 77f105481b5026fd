"""The table of a compile on narrow screens, and what is said of crashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.compiler.resources.test_measure import manifest, point
from tritonsmith import worker
from tritonsmith.compiler import report


@pytest.mark.parametrize("width", [200, 80, 50, 40, 20])
def test_no_column_is_lost(tmp_path: Path, width: int) -> None:
    stages = dict.fromkeys(("ttir", "ttgir", "llir", "ptx", "cubin", "sass"), "x" * 3000)
    made = manifest(tmp_path, point(tmp_path, "cuda:80:32", {"num_warps": 4, "num_stages": 3}, stages))
    screen = Console(width=width, record=True, quiet=False)
    with screen.capture() as captured:
        for table in report.table(made):
            screen.print(table, soft_wrap=True)
    text = captured.get()
    for word in ("point", *stages, "time", *re.split(r"(?<=,)|\s", made.points[0].id)):
        assert word in text


def test_of_a_crash_each_line_is_told_once_and_none_of_our_own(tmp_path: Path) -> None:
    said = "the compiler died: SIGABRT\nc.cpp:1: Assertion `x' failed."
    log = (
        "c.cpp:1: Assertion `x' failed.\nFatal Python error: Aborted\n\n"
        f'  File "/triton/compiler.py", line 9 in make_llir\n'
        f'  File "{worker.FOLDER}/compile_point.py", line 3 in attempt\n'
        '  File "<frozen runpy>", line 88 in _run_code\n'
    )
    crashed = point(tmp_path, "cuda:80:32", {}, {}, status="crashed", error=said, log=log)
    (text,) = report.failures(manifest(tmp_path, crashed))
    assert text.count("Assertion") == 1
    assert "make_llir" in text
    assert "serve.py" not in text
    assert "runpy" not in text
