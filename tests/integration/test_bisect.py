"""A bisect over two real wheels: what it finds, what it refuses, and a kill before each of its changes."""

from __future__ import annotations

import functools
import html
import json
import re
import shutil
import signal
import threading
import zipfile
from collections.abc import Iterator
from dataclasses import replace
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.integration.harness import SMITH, Smith, preloaded
from tritonsmith.compiler import up

EXAMPLE = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
KERNEL = (
    "--kernel",
    "matmul.py:tiled_matmul",
    "--signature",
    "*fp16:16,*fp16:16,*fp32:16,i32:16,i32:16,i32:16,TILE_M=64,TILE_N=64,TILE_K=32",
    "--target",
    "h100",
)
GOOD = "3.8.0"  # the last but one: nothing lies between
ENDS = ("--good", GOOD, "--bad", "installed")
NEWER = f"import sys, triton; print(triton.__version__); sys.exit(triton.__version__ != '{GOOD}')"


@pytest.fixture
def smith(with_wheel: Smith, tmp_path: Path) -> Smith:
    """Somebody whose active environment has the newest Triton."""
    shutil.copy(EXAMPLE, tmp_path / "matmul.py")
    here = with_wheel.beside(tmp_path)
    active = str(with_wheel.env("wheel") / "venv")
    return replace(here, more={**here.more, "VIRTUAL_ENV": active})


@pytest.mark.slow
def test_a_command_finds_the_release(smith: Smith) -> None:
    done = smith("bisect", *ENDS, "--json", "--", "python", "-c", NEWER)
    told = json.loads(done.out)
    newest = told["release"]["bad"]
    assert (told["decided"], told["release"]["good"], told["release"]["suspects"]) == (True, GOOD, [newest])
    assert [(one["triton"], one["verdict"], one["figures"]) for one in told["tested"]] == [
        (GOOD, "good", f"exit code 0: {GOOD}"),
        (newest, "bad", f"exit code 1: {newest}"),
    ]
    name = told["session"]
    assert f"first bad: {newest}" in smith("bisect.status", name).out
    assert smith("bisect.log", name).out.startswith("# `python -c ")


@pytest.mark.slow
def test_a_kernel_that_is_as_bad_before_is_no_culprit(smith: Smith) -> None:
    error = smith("bisect", *ENDS, *KERNEL, "--when", "registers>1", code=4).error
    assert f"reproduces at the good end, {GOOD}" in error
    assert "registers" in error
    error = smith("bisect", *ENDS, *KERNEL, code=4).error
    assert "does not reproduce at the bad end" in error
    assert "compiles" in error


@pytest.mark.slow
def test_the_passes_of_two_releases_are_compared(smith: Smith) -> None:
    told = json.loads(smith("bisect", *ENDS, *KERNEL, "--when", "compile_seconds!=+0", "--json").out)
    assert re.match(
        "passes: (not one pass: after [1-9]|[a-z-]+ is the first pass from which on)", told["passes"]
    )
    assert told["passes"].partition("; ")[0] in html.unescape(Path(told["page"]).read_text(encoding="utf-8"))
    assert {one["verdict"] for one in told["tested"]} == {"good", "bad"}


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """The URL of an index of wheels between two releases; their hashes sort otherwise than their dates."""
    folder = tmp_path / "site" / "triton"
    folder.mkdir(parents=True)
    for date, commit, bad in (("0101", "ffffffff", 0), ("0201", "aaaaaaaa", 0), ("0301", "0123abcd", 1)):
        version = f"3.9.0.dev2026{date}+git{commit}"
        about = f"triton-{version}.dist-info"
        with zipfile.ZipFile(folder / f"triton-{version}-py3-none-any.whl", "w") as wheel:
            wheel.writestr("triton/__init__.py", f"__version__ = '{version}'\nBAD = {bad}\n")
            wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: triton\nVersion: {version}\n")
            tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            wheel.writestr(f"{about}/WHEEL", tag)
            wheel.writestr(f"{about}/RECORD", "")
    (folder / "triton-3.9.0.dev20260302-py3-none-any.whl").write_text("no wheel")
    handler = functools.partial(SimpleHTTPRequestHandler, directory=str(folder.parent))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_the_nightly_that_was_bad_first_is_found_by_date(smith: Smith, index: str) -> None:
    test = f"import sys, triton; sys.exit(getattr(triton, 'BAD', triton.__version__ != '{GOOD}'))"
    command = ("--nightlies", index, "--json", "--", "python", "-c", test)
    told = json.loads(smith("bisect", *ENDS, *command).out)
    assert told["nightly"]["good"] == "3.9.0.dev20260201+gitaaaaaaaa"
    assert told["nightly"]["suspects"] == ["3.9.0.dev20260301+git0123abcd"]
    assert told["verdict"].startswith("first bad nightly: 3.9.0.dev20260301+git0123abcd")


@pytest.mark.slow
def test_what_was_killed_before_any_change_goes_on(smith: Smith) -> None:
    folder = smith.home / "bisects"
    at = 0
    while True:
        command = (SMITH, "bisect", *ENDS, "--json", "--", "python", "-c", f"{NEWER} + {at} * 0")
        done = preloaded().run(command, cwd=smith.cwd, env=smith.environ, timeout=300, death=(at, folder))
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        told = json.loads(smith(*command[1:]).out)
        assert (told["decided"], told["release"]["good"]) == (True, GOOD), at
        assert len(told["tested"]) == 2
        at += 1
    assert at > 6
    assert not list(folder.glob("*/.*.tritonsmith"))
