"""Processes that have Triton loaded."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tritonsmith.facts import triton_processes

MAPS = """
import mmap, sys
with open(sys.argv[1], "rb") as file:
    loaded = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
print("ready", flush=True)
sys.stdin.read()
"""


def test_a_process_that_has_the_library_mapped(tmp_path: Path) -> None:
    library = tmp_path / "triton" / "_C" / "libtriton.so"
    library.parent.mkdir(parents=True)
    (tmp_path / "triton" / "__init__.py").write_text("__version__ = '3.8.0+git1234567'\n")
    library.write_bytes(b"\x7fELF" * 1000)
    argv = (sys.executable, "-c", MAPS, str(library))
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdout.readline()
        during = triton_processes.living()
        process.stdin.close()
        process.wait()
    after = triton_processes.living()
    assert during is not None
    assert after is not None
    (found,) = [found for found in during if found.pid == process.pid]
    assert found.command.endswith(str(library))
    assert found.version == "3.8.0"
    assert process.pid not in {one.pid for one in after}
    assert os.getpid() not in {one.pid for one in during}


def test_a_system_that_does_not_tell(tmp_path: Path) -> None:
    assert triton_processes.living(tmp_path) is None
