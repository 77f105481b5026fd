"""One request after the other by a worker that stays: each is answered as by a worker of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.worker.test_compile import place, point, request, run
from tritonsmith import worker
from tritonsmith.compiler import targets
from tritonsmith.worker.file_context import EXIT_COLD

__all__ = ["place"]

# What the file learns of its process goes to a file, in which each load adds a line.
SEES = """
def note(*values):
    with open({seen!r}, "a") as file:
        print(*values, file=file)
    return len(values)
"""
KERNEL = "{first}\nimport triton\n{sees}\nSEEN = note({values})\n@triton.jit\ndef k(x, WHAT):\n    SEEN\n"
TORCH = {
    "__init__.py": """
import types
from torch import cuda, version
with open({log!r}, "a") as log:
    log.write("imported\\n")
backends = types.SimpleNamespace(cuda=types.SimpleNamespace(is_built=lambda: False))
""",
    "cuda.py": "def get_device_capability(*_):\n    return (1, 1)\n",
    "version.py": "cuda = None\n",
}


def write(place: Path, values: str, first: str = "import torch") -> None:
    sees = SEES.format(seen=str(place / "seen"))
    (place / "kernel.py").write_text(KERNEL.format(first=first, sees=sees, values=values))


def seen(place: Path) -> list[str]:
    return (place / "seen").read_text().splitlines()


def install_torch(place: Path) -> Path:
    """Install a package that is called torch; the file that is returned has a line for each import of it."""
    for name, text in TORCH.items():
        path = place / "site" / "torch" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text.replace("{log!r}", repr(str(place / "torch.log"))))
    return place / "torch.log"


class Attendant:
    """A worker that stays."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.process: subprocess.Popen[str] | None = None

    def ask(self, *points: dict[str, Any], **more: Any) -> dict[str, Any]:
        path = request(self.place, *points, **more)
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, str(worker.FOLDER), "attend", str(path)],
                env={**os.environ, "PYTHONPATH": str(self.place / "site")},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(f"compile {path}\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def rows(self, *points: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
        assert self.ask(*points, **more) == {"status": "ok", "value": 0, "error": None}
        return [json.loads(line) for line in (self.place / "results.jsonl").read_text().splitlines()]


@pytest.fixture
def attendant(place: Path) -> Iterator[Attendant]:
    made = Attendant(place)
    yield made
    if made.process:
        assert made.process.stdin is not None
        made.process.stdin.close()
        assert made.process.wait(30) == 0
        assert made.process.stdout is not None
        made.process.stdout.close()


def without_times(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        {name: value for name, value in row.items() if name not in ("seconds", "cpu_seconds")} for row in rows
    ]


def test_a_file_sees_a_process_of_its_own(place: Path, attendant: Attendant) -> None:
    values = "sys.argv[1:], sys.stdin.read(), 'LEFT' in os.environ, os.environ.setdefault('LEFT', '1')"
    write(place, values, "import os, sys, torch")
    first = attendant.rows(point("p"))
    second = attendant.rows(point("p"))
    assert seen(place)[0] == seen(place)[1] == f"['compile', {str(place / 'request.json')!r}]  False 1"
    assert without_times(first) == without_times(second)
    assert first[0]["news"]["stand_ins"] == {"torch": "kernel.py:1"}
    write(place, "os.getcwd()", "import os")
    attendant.rows(point("p"))
    assert seen(place)[-1] == str(place)
    _, cold = run(place, point("p"))
    assert without_times(attendant.rows(point("p"))) == without_times(cold)


def test_a_later_request_has_another_gpu_and_other_stand_ins(place: Path, attendant: Attendant) -> None:
    write(place, "torch.cuda.get_device_properties(0).name, torch.version.hip is None")
    h100, mi300x = (targets.all_gpu_facts([targets.parse(name)]) for name in ("h100", "mi300x"))
    amd = point("p", target=["hip", "gfx942", 64])
    attendant.rows(point("p"), gpus=h100)
    warm = attendant.rows(amd, gpus=mi300x)
    _, cold = run(place, amd, gpus=mi300x)
    assert seen(place)[1] == seen(place)[2] != seen(place)[0]
    assert without_times(warm) == without_times(cold)
    write(place, "absent.x", "import absent")
    assert attendant.ask(point("p"))["value"] == 2
    warm = attendant.rows(point("p"), stand_ins=["torch", "absent"])
    assert warm[0]["news"]["stand_ins"] == {"absent": "kernel.py:1", "absent.x": "kernel.py:9"}


@pytest.mark.parametrize("end", ["os.abort()", "os._exit(0)"])
def test_a_file_that_ends_its_process_ends_one_request(end: str, place: Path, attendant: Attendant) -> None:
    write(place, end, "import os")
    assert attendant.ask(point("p"))["status"] == "crashed"
    write(place, "1")
    assert attendant.rows(point("p"))[1]["status"] == "ok"
    statuses = [
        row["status"] for row in attendant.rows(point("a", "abort"), point("b", "hang"), timeout=2)[1:]
    ]
    assert sorted(statuses) == ["crashed", "timeout"]


def test_torch_is_imported_once_for_all_files_that_import_it(place: Path, attendant: Attendant) -> None:
    log = install_torch(place)
    asks = "torch.cuda.get_device_capability(), torch.version.hip is None, len(sys.modules['torch'].__path__)"
    write(place, asks, "import sys, torch")
    every = [attendant.rows(point("p")) for _ in range(4)]
    assert log.read_text().splitlines() == ["imported"]
    assert seen(place) == ["(9, 0) True 1"] * 4
    a100 = point("p", target=["cuda", 80, 32])
    every.append(attendant.rows(a100))
    assert seen(place)[4] == "(8, 0) True 1"
    _, cold = run(place, point("p"))
    assert all(without_times(rows) == without_times(cold) for rows in every[:4])
    write(place, "'torch' in sys.modules", "import sys")
    attendant.rows(point("p"))
    assert seen(place)[-1] == "False"
    assert len(log.read_text().splitlines()) == 2


def test_a_torch_that_a_file_can_do_without_is_left_to_the_file(place: Path, attendant: Attendant) -> None:
    install_torch(place)
    (place / "site" / "torch" / "cuda.py").write_text("raise OSError('no such library')\n")
    write(
        place, "'torch' in sys.modules", "try:\n    import sys\n    import torch\nexcept OSError:\n    pass"
    )
    assert attendant.rows(point("p"))[-1]["status"] == "ok"
    assert seen(place) == ["False"]


@pytest.mark.parametrize(
    "first",
    [
        "import os\nos.environ['X'] = '1'\nimport torch",
        "import sys, types\nsys.modules['torch.cuda'] = types.ModuleType('torch.cuda')\nimport torch",
        "import sys\nsys.path_hooks.append(lambda _: None)\nimport torch",
        "import sys\nsys.path.insert(0, %r)\nimport torch",
    ],
)
def test_a_file_that_changes_what_torch_imports_has_its_own(
    first: str,
    place: Path,
    attendant: Attendant,
) -> None:
    log = install_torch(place)
    other = place / "other"
    (other / "torch").mkdir(parents=True)
    write(place, "torch.cuda")
    for _ in range(2):
        attendant.rows(point("p"))
    write(place, "torch.cuda", first % str(other) if "%r" in first else first)
    answer = attendant.ask(point("p"))
    assert (answer["status"], answer["error"]) == ("crashed", f"the process ended: exit code {EXIT_COLD}")
    assert len(log.read_text().splitlines()) == 1
    write(place, "torch.cuda")
    attendant.rows(point("p"))


def test_a_file_of_torch_has_its_own(place: Path, attendant: Attendant) -> None:
    log = install_torch(place)
    write(place, "torch.cuda")
    for _ in range(2):
        attendant.rows(point("p"))
    write(place, "torch.cuda", "from . import version\nimport torch")
    inside = (place / "kernel.py").rename(place / "site" / "torch" / "kernel.py")
    answer = attendant.ask(point("p"), file=str(inside))
    assert answer["error"] == f"the process ended: exit code {EXIT_COLD}"
    assert len(log.read_text().splitlines()) == 1


def test_a_file_that_asks_for_the_gpu_is_loaded_for_each_target(place: Path, attendant: Attendant) -> None:
    log = install_torch(place)
    write(place, "torch.cuda.get_device_capability(), os.getppid()", "import os, torch")
    points = [point("a"), point("b", target=["cuda", 80, 32]), point("c", target=["hip", "gfx942", 64])]
    every = [attendant.rows(*points) for _ in range(3)]
    _, cold = run(place, *points)
    lines = [line.rpartition(" ") for line in seen(place)]
    assert sorted(line[0] for line in lines) == sorted(["(9, 0)", "(8, 0)", "(9, 4)"] * 4)
    assert attendant.process is not None
    # The first load is by a child of the worker, and the others are by children of that child.
    assert [line[2] for line in lines[:9]].count(str(attendant.process.pid)) == 3
    key = lambda row: row.get("id", "")  # noqa: E731
    assert all(sorted(without_times(rows), key=key) == sorted(without_times(cold), key=key) for rows in every)
    assert len(log.read_text().splitlines()) == 1 + 3  # of the shelf, the cold run


def test_a_target_for_which_the_file_goes_another_way(place: Path, attendant: Attendant) -> None:
    """On the second target it changes what torch depends on before it imports torch."""
    install_torch(place)
    write(place, "torch.cuda")
    for _ in range(2):
        attendant.rows(point("p"))
    first = """import os, triton
os.environ["PATH"] += "" if triton.runtime.driver.active.get_current_target().arch == 90 else ":"
import torch"""
    write(place, "torch.cuda", first)
    assert attendant.rows(point("p"))[1]["status"] == "ok"
    answer = attendant.ask(point("a"), point("b", target=["cuda", 80, 32]))
    assert answer["error"] == f"the process ended: exit code {EXIT_COLD}"
