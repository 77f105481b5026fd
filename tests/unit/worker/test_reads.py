"""What the worker tells of the files that a load reads: each with the digest of what was read."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.unit.worker.test_compile import append, place, point, run
from tests.unit.worker.test_load import ASKS, HEAD
from tests.unit.worker.test_warm import Attendant, attendant
from tritonsmith.worker import file_context

__all__ = ["attendant", "place"]

KERNEL = "@triton.jit\ndef k(x, WHAT=N): pass\n"
NAMED = "import importlib\n" + HEAD + 'N = importlib.import_module("lazy" + "mod").N\n' + KERNEL
DATA = "import json\n" + HEAD + "N = json.load(open({data!r}))\n" + KERNEL


def told(place: Path, text: str, *points: dict[str, Any], code: int = 0) -> list[dict[str, str]]:
    """What each row tells: the first is of the load."""
    (place / "kernel.py").write_text(text)
    (place / "scratch").mkdir(exist_ok=True)
    _, rows = run(place, *(points or [point("p", "x")]), scratch=str(place / "scratch"), code=code)
    return [row.get("refused", row)["reads"] for row in rows]


def sums(*paths: Path) -> dict[str, str]:
    return {str(path): sha256(path.read_bytes()).hexdigest() for path in paths}


@pytest.fixture
def data(place: Path) -> Path:
    path = place / "data.json"
    path.write_text("1")
    return path


def test_a_module_that_no_text_names(place: Path) -> None:
    module = place / "lazymod.py"
    module.write_text("N = 1\n")
    assert told(place, NAMED) == [sums(module), {}]


def test_a_module_that_is_found_by_a_variable_and_its_bytecode(place: Path) -> None:
    module = place / "site" / "helper.py"
    module.write_text("N = 1\n")
    text = f"{HEAD}from helper import N\n{KERNEL}"
    assert told(place, text)[0] == sums(module)
    assert told(place, text)[0] == sums(module)  # by then there may be bytecode


def test_a_data_file(place: Path, data: Path) -> None:
    assert told(place, DATA.format(data=str(data))) == [sums(data), {}]


def test_what_does_not_count(place: Path, data: Path) -> None:
    text = (
        f"import os, tempfile, xml.dom.minidom\n{HEAD}"
        f"def read():\n"
        f"    os.listdir({str(place)!r})\n"
        f"    try:\n        open({str(place / 'optional')!r})\n    except OSError:\n        pass\n"
        f"    with open({str(place / 'log')!r}, 'a') as file:\n        file.write('loaded')\n"
        f"    with open({str(place / 'log')!r}) as file:\n        file.read()\n"
        f"    with open({str(place / 'new')!r}, 'w') as file:\n        file.write('x')\n"
        f"    os.replace({str(place / 'new')!r}, {str(place / 'made')!r})\n"
        f"    open({str(place / 'made')!r}).read()\n"
        f"    with tempfile.NamedTemporaryFile('w+') as file:\n        open(file.name).read()\n"
        f"    open('/proc/self/stat').read()\n"
        f"    return int(open({str(data)!r}).read())\nN = read()\n{KERNEL}"
    )
    assert told(place, text)[0] == sums(data)


def test_what_is_edited_after_it_was_read_has_no_digest(place: Path, data: Path) -> None:
    text = DATA.format(data=str(data)).replace(
        KERNEL, f"import subprocess\nM = subprocess.run(['sh', '-c', 'echo 2 > {data}'])\n{KERNEL}"
    )
    assert told(place, text.replace("WHAT=N", "WHAT=(N, M)"))[0] == {str(data): ""}


def test_each_load_tells_what_it_has_read(place: Path) -> None:
    """A file that asks about the GPU is loaded for each of them."""
    for arch in (80, 90):
        (place / f"data{arch}").write_text(str(arch))
    text = f"{HEAD}N = open({str(place)!r} + '/data' + str({ASKS})).read()\n{KERNEL}"
    points = [point(f"{arch}-{n}", "x", target=["cuda", arch, 32]) for arch in (80, 90) for n in range(2)]
    head, *rows = told(place, text, *points)
    assert head == sums(place / "data80")
    assert [row for row in rows if row] == [sums(place / "data90")]


def test_a_heuristic_may_read(place: Path, data: Path) -> None:
    append(place / "site/triton/__init__.py", "from triton.runtime.jit import heuristics\n")
    append(
        place / "site/triton/runtime/jit.py",
        "\nclass Heuristics:\n    def __init__(self, fn, values):\n"
        "        self.fn, self.values = fn, values\n"
        "def heuristics(values):\n    return lambda fn: Heuristics(fn, values)\n",
    )
    text = f"{HEAD}@triton.heuristics({{'WHAT': lambda _: len(open({str(data)!r}).read())}})\n"
    text += "@triton.jit\ndef k(x, WHAT): pass\n"
    assert told(place, text, point("p", constexprs={})) == [{}, sums(data)]


def test_a_refusal_tells_what_was_read_until_then(place: Path, data: Path) -> None:
    data.write_text("no JSON")
    assert told(place, DATA.format(data=str(data)), code=2) == [sums(data)]


def test_a_refusal_for_want_of_a_file_is_not_for_good(place: Path) -> None:
    lacking = str(place / "lacking.json")
    assert told(place, DATA.format(data=lacking), code=2) == [{lacking: ""}]


def test_a_worker_that_stays_tells_of_each_load(place: Path, data: Path, attendant: Attendant) -> None:
    (place / "kernel.py").write_text(DATA.format(data=str(data)))
    scratch = place / "scratch"
    scratch.mkdir()
    for text in ("1", "2"):
        data.write_text(text)
        head, row = attendant.rows(point("p", "x"), scratch=str(scratch))
        assert (head["reads"], row["reads"]) == (sums(data), {})


def test_too_many_files_are_told_as_one_without_a_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_context, "_MOST_READ", 2)
    paths = [tmp_path / f"{number}.json" for number in range(3)]
    for path in paths:
        path.write_text(json.dumps(1))
    made = file_context.FileReads()
    made.leave_out(str(tmp_path / "kernel.py"), ())
    with made.watched():
        for path in paths[:2]:
            path.read_text()
    assert made.news() == sums(*paths[:2])
    with made.watched():
        paths[2].read_text()
    assert made.news() == {}
