"""The table of a compile on narrow screens, and what is said of crashes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from rich.console import Console

from tests.unit.compiler.resources.test_measure import manifest as manifest_of
from tests.unit.compiler.resources.test_measure import point
from tritonsmith import worker
from tritonsmith.compiler import manifest, report
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.worker.messages import CompileHead, LedgerNews


@pytest.mark.parametrize("width", [200, 80, 50, 40, 20])
def test_no_column_is_lost(tmp_path: Path, width: int) -> None:
    stages = dict.fromkeys(("ttir", "ttgir", "llir", "ptx", "cubin", "sass"), "x" * 3000)
    made = manifest_of(tmp_path, point(tmp_path, "cuda:80:32", {"num_warps": 4, "num_stages": 3}, stages))
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
    (text,) = report.failures(manifest_of(tmp_path, crashed))
    assert text.count("Assertion") == 1
    assert "make_llir" in text
    assert "serve.py" not in text
    assert "runpy" not in text


DOUBT = "k.py:3: the code depends on the truth value of torch.x, a stand-in"
NEWS = [
    LedgerNews(
        {"torch.nn.Module": "k.py:2", "setuptools": "triton/runtime/build.py:7"},
        {"flash_attn": "k.py:4"},
        (DOUBT,),
    ),
    LedgerNews({f"torch.f{number}": "u.py:1" for number in range(5)}),
    LedgerNews(doubts=(DOUBT,)),
]


def test_what_all_processes_noted_is_told_once() -> None:
    replaced, warnings = manifest.stand_ins(NEWS), manifest.warnings(NEWS)
    assert replaced == {"torch.nn.Module": "k.py:2", **{f"torch.f{number}": "u.py:1" for number in range(5)}}
    assert warnings == (
        "k.py:4: flash_attn is not installed; without it, the code takes another path",
        DOUBT,
    )
    made = Manifest(Path("/out"), "k", "k.py", "", "", "", "", "", (), replaced, warnings)
    *told, names = report.notes(
        CompileHead("", {}, "", "", ""), made, CompileRequest(Path("k.py"), "k", "", ())
    )
    assert tuple(told) == warnings
    assert names == (
        "torch is not installed, and stand-ins replaced torch.nn.Module (k.py:2), torch.f0 (u.py:1), "
        "torch.f1 (u.py:1), torch.f2 (u.py:1) and 2 more"
    )
