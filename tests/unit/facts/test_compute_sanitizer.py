"""What compute-sanitizer 2025.3 wrote on an H200, about a store of a Triton kernel far out of bounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.core.errors import FactError
from tritonsmith.facts import tools

ERROR = """========= COMPUTE-SANITIZER
========= Invalid __global__ write of size 8 bytes
=========     at scale+0x120 in oob.py:6
=========     by thread (96,0,0) in block (0,0,0)
=========     Access to 0x7f59c0eb3b00 is out of bounds
=========     and is 3,861,592,321 bytes after the nearest allocation at 0x7f58dac00000 of size 512 bytes
=========     Saved host backtrace up to driver entry point at kernel launch time
=========         Host Frame: launch [0x1d7e] in __triton_launcher.cpython-312-x86_64-linux-gnu.so
=========
========= Program hit CUDA_ERROR_LAUNCH_FAILED (error 719) on CUDA API call to cuCtxSynchronize.
=========     Saved host backtrace up to driver entry point at error
=========
========= Target application returned an error
========= ERROR SUMMARY: 514 errors
"""
CLEAN = "========= COMPUTE-SANITIZER\nok\n========= RACECHECK SUMMARY: 0 hazards displayed\n"


def test_the_first_error() -> None:
    head, lines = tools.first_sanitizer_error(ERROR)
    assert head == "Invalid __global__ write of size 8 bytes"
    assert tools.error_place(lines) == "at scale+0x120 in oob.py:6"
    assert lines[-1].startswith("and is 3,861,592,321 bytes after")


def test_nothing_found() -> None:
    assert tools.first_sanitizer_error(CLEAN) == ("", ())
    assert tools.sanitizer_finished(CLEAN)
    assert not tools.sanitizer_finished("========= COMPUTE-SANITIZER\n")


def test_what_the_sanitizer_itself_says_is_no_clean_run() -> None:
    text = "========= Error: Device not supported\n========= ERROR SUMMARY: 0 errors\n"
    assert tools.first_sanitizer_error(text)[0] == "Error: Device not supported"


def test_api_error_alone_counts() -> None:
    text = "========= Program hit CUDA_ERROR_INVALID_VALUE (error 1)\n========= ERROR SUMMARY: 1 error\n"
    assert tools.first_sanitizer_error(text)[0].startswith("Program hit")


def test_it_is_not_there(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(FactError, match="no compute-sanitizer"):
        tools.find_sanitizer()
