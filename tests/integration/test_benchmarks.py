"""Each benchmark runs with a small input: an import or a flag that is gone is seen. Nothing is timed."""

from __future__ import annotations

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.harness import Smith
from tests.integration.mini_site import Site
from tritonsmith.compiler import up

FOLDER = Path(__file__).parents[2] / "benchmarks"
EVERY = sorted(FOLDER.glob("*.py"))
MATMUL = Path(up.__file__).parent / "examples" / "tiled_matmul.py"
SIGNATURE = ("--signature", "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32,64,64,32", "--target", "cuda:80")
# What nothing here is small enough for, and why. Their imports and flags are looked at all the same.
NEEDS = {
    "bisect_plan.py": "a clone with the branch points of Triton's releases",
    "bisect_releases.py": "wheels of several releases",
    "bisect_run.py": "commits of Triton, and builds of them",
    "capture.py": "torch",
    "explain.py": "Triton's sources, and another checkout of this tool",
    "farm_site.py": "Chromium; tests/integration/test_farm_site.py opens pages in it",
    "inner_loop.py": "two builds of Triton's own sources, which it edits by name",
    "llvm_closure.py": "an LLVM that was built from source",
    "llvm_levers.py": "an LLVM whose objects have precompiled headers",
    "llvm_schedule.py": "an LLVM that was built from source, and its log",
    "rehearse.py": "Tritons of two releases",
    "pass_report.py": "Chromium; tests/integration/test_passes_report.py opens reports in it",
}
SMALL = {
    "caches.py": ("--entries", "20", "--runs", "1"),
    "command_line.py": ("--runs", "1"),
    "farm_schedule.py": ("--kernels", "10"),
    "kernel_compile.py": ("PYTHON", "--rounds", "1", "--points", "2"),
    "kernel_reduce.py": ("PYTHON", "--rounds", "1", "--case", "failure"),
    "kernel_resources.py": ("PYTHON", "--entries", "2", "--rounds", "1"),
    "pass_dumps.py": ("PYTHON", "--megabytes", "1", "--rounds", "1", "--tile", "16"),
    "passes_check.py": ("DUMP", "--mutants", "1"),
    "watch.py": ("--files", "5", "--runs", "1"),
}
BUILT = {"debug_library.py", "rebuild.py"}  # which want a build folder
_IMPORT = re.compile(r"^\s*from (?P<module>tritonsmith[\w.]*) import (?P<names>[\w, ]+)", re.MULTILINE)


def run(name: str, *words: str | Path, smith: Smith | None = None) -> str:
    """Run a benchmark; what it printed."""
    argv = (sys.executable, FOLDER / name, *words)
    environ, cwd = (smith.environ, smith.cwd) if smith else (None, FOLDER.parent)
    done = subprocess.run(
        argv, env=environ, cwd=cwd, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, f"{name}: {done.stdout}\n{done.stderr}"
    return done.stdout


def test_every_benchmark_is_here() -> None:
    assert {path.name for path in EVERY} == set(NEEDS) | set(SMALL) | BUILT


@pytest.mark.parametrize("path", EVERY, ids=[path.stem for path in EVERY])
def test_a_benchmark_finds_what_it_imports(path: Path) -> None:
    """Also in the programs that some hold as texts, and hand to another interpreter."""
    for match in _IMPORT.finditer(path.read_text(encoding="utf-8")):
        module = importlib.import_module(match["module"])
        for name in match["names"].split(","):
            word = name.split(" as ")[0].strip()
            if not hasattr(module, word):
                importlib.import_module(f"{match['module']}.{word}")


@pytest.fixture(scope="module")
def wheel(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool with an environment that has Triton, and a dump of a kernel."""
    smith = with_wheel.beside(tmp_path_factory.mktemp("benchmarks"))
    smith("passes.dump", MATMUL, *SIGNATURE, "--out", smith.cwd / "dump")
    return smith


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(SMALL))
def test_a_benchmark_runs(wheel: Smith, name: str) -> None:
    python = wheel.env("wheel") / "venv" / "bin" / "python"
    places: dict[str, str | Path] = {"PYTHON": python, "DUMP": wheel.cwd / "dump"}
    assert run(name, *(places.get(word, word) for word in SMALL[name]), smith=wheel)


@pytest.mark.slow
def test_mutants_for_a_gpu_are_one_changed_line_each(wheel: Smith, tmp_path: Path) -> None:
    """With what the check says of them; the program that runs them lies beside them."""
    run("passes_check.py", wheel.cwd / "dump", "--gpu", tmp_path, "--mutants", "3", smith=wheel)
    lines = (tmp_path / "dump.ttgir").read_text(encoding="utf-8").splitlines()
    rows = json.loads((tmp_path / "mutants.json").read_text(encoding="utf-8"))
    assert len(rows) == 3
    for row in rows:
        assert lines[row["line"] - 1].strip() == row["before"] != row["changed"].strip()
        assert row["verdict"] in ("found", "survived", "not decided")
    assert (tmp_path / "run.py").is_file()


@pytest.mark.slow
def test_the_cost_of_a_build_that_has_nothing_to_do(site: Site) -> None:
    printed = run("rebuild.py", "--source", site.smith.cwd, "--runs", "1", smith=site.smith)
    assert "added to ninja" in printed


@pytest.mark.slow
def test_the_cost_of_a_library_in_debug(site: Site) -> None:
    words = ("--llvm-source", site.sources, "--pass", "mini-twice")
    try:
        assert "mini-twice" in run("debug_library.py", *words, smith=site.smith)
    finally:
        site.forget()


def test_a_simulated_build_waits_for_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(FOLDER)
    schedule = importlib.import_module("llvm_schedule")
    users = {str(number) for number in range(8)}
    seconds = {"header": 3.0, "file": 0.0, "link": 1.0} | dict.fromkeys(users, 1.0)
    waits = {"header": set(), "file": {"header"}, "link": users} | {user: {"file"} for user in users}
    built = schedule.Graph(seconds, waits, {"header"})
    bare = schedule.without_headers(built, 0.5)
    assert [schedule.makespan(built, cores) for cores in (1, 2, 8)] == [12, 8, 5]
    assert [schedule.makespan(bare, cores) for cores in (1, 2, 8)] == [17, 9, 3]
