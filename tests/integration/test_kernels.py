"""`kernel.compile` and `kernel.show` with the newest wheel."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith, capture, interrupt, wait_for
from tests.support import slow

ADD = """
import torch
import triton
import triton.language as tl

DEVICE = triton.runtime.driver.active.get_active_torch_device()

@triton.jit
def double(x):
    return x * 2

@triton.jit
def add(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(y_ptr + offsets, double(x), mask=offsets < n)

x = torch.rand(98432, device=DEVICE)
add[(1,)](x, x, 98432, BLOCK=1024)
print("it was run to its end")
raise SystemExit(3)
"""
BAD = """
import ctypes, os, time
import triton
import triton.language as tl

WAYS = {"abort": os.abort, "segfault": lambda: ctypes.string_at(0), "fine": lambda: 7}
WAYS["hang"] = lambda: time.sleep(600)

@triton.heuristics({"X": lambda args: WAYS[args["HOW"]]()})
@triton.jit
def bad(p, HOW: tl.constexpr, X: tl.constexpr):
    tl.store(p, X)

@triton.autotune(configs=[triton.Config({"BLOCK": size}, num_warps=2) for size in (64, 128)], key=["n"])
@triton.jit
def tuned(p, n, BLOCK: tl.constexpr):
    tl.store(p + tl.arange(0, BLOCK), n)
"""
ASKING = """
import torch
import triton
import triton.language as tl

BIG = {asks}
try:
    import torch_extension_that_is_not_here
    SIZES = [1]
except ImportError:
    SIZES = [64, 128] if BIG else [16, 32]

def make():
    @triton.autotune([triton.Config({{"B": size}}) for size in SIZES], key=[])
    @triton.jit
    def inner(x, B: tl.constexpr):
        tl.store(x + tl.arange(0, B), 0.0)
    return inner

kernel = make()
"""
ASKS = (
    "triton.runtime.driver.active.get_current_target().arch >= 90",
    "triton.runtime.driver.active.utils.get_device_properties(0)['max_shared_mem'] >= 200000",
    "torch.cuda.get_device_properties('cuda').major >= 9",
)
POINTERS = "*fp32:16,*fp32:16,i32"


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside some kernels, with the newest wheel in the environment `wheel`."""
    root = tmp_path_factory.mktemp("kernel bench")
    smith = with_wheel.beside(root)
    (root / "add.py").write_text(ADD)
    (root / "bad.py").write_text(BAD)
    (root / "asking.py").write_text(ASKING.format(asks=True))
    return smith


@pytest.fixture(scope="module")
def out(smith: Smith) -> dict[str, Any]:
    """Six points of a file that imports torch, which is not here, and exits."""
    done = smith(
        "kernel.compile", "add.py", "--signature", POINTERS, "--target", "h100,mi300x", "--target", "a100",
        "--sweep", "BLOCK=256,1024", "--out", "out", "--json",
    )  # fmt: skip
    content: dict[str, Any] = json.loads(done.out)
    return content


def test_every_point_has_every_stage(smith: Smith, out: dict[str, Any]) -> None:
    assert out["schema"] == 1
    assert [point["id"] for point in out["points"]][:2] == ["cuda-90-32,BLOCK=256", "cuda-90-32,BLOCK=1024"]
    assert len(out["points"]) == 6
    for point in out["points"]:
        assert point["status"] == "ok"
        amd = point["target"].startswith("hip")
        wanted = {"ttir", "ttgir", "llir"} | ({"amdgcn", "hsaco"} if amd else {"ptx", "cubin", "sass"})
        assert wanted <= set(point["stages"])
        for stage in point["stages"].values():
            assert (smith.cwd / "out" / stage["path"]).stat().st_size == stage["size"]
        assert point["metadata"]["num_warps"] == 4
    ptx = (smith.cwd / "out" / out["points"][0]["stages"]["ptx"]["path"]).read_text(encoding="utf-8")
    assert ".entry add(" in ptx
    assert ".target sm_90a" in ptx


def test_the_manifest_makes_the_same_again(smith: Smith, out: dict[str, Any]) -> None:
    program, *argv = shlex.split(out["command"])
    assert program == "tritonsmith"
    smith(*argv)
    again = json.loads((smith.cwd / "out" / "manifest.json").read_text(encoding="utf-8"))
    for before, after in zip(out["points"], again["points"], strict=True):
        assert before["stages"]["ttgir"] == after["stages"]["ttgir"]


def test_a_stage_with_its_source(smith: Smith, out: dict[str, Any]) -> None:
    assert out
    shown = smith(
        "kernel.show", "out", "--point", "cuda-90-32,BLOCK=256", "--stage", "ttgir", "--source-lines"
    ).out
    assert "// add.py:14: offsets = tl.program_id(0)" in shown
    assert "// add.py:10: return x * 2" in shown
    shown = smith(
        "kernel.show", "out", "--point", "cuda-90-32,BLOCK=256", "--stage", "sass", "--function", "add"
    ).out
    assert "EXIT" in shown
    shown = smith("kernel.show", "add.py:add", "--signature", f"{POINTERS},64", "--stage", "amdgcn").out
    assert "s_endpgm" in shown
    flags = ("--point", "cuda-90-32,BLOCK=256", "--stage", "ttir", "--link")
    assert smith("kernel.show", "out", *flags).out.startswith("https://godbolt.org/clientstate/")


@pytest.mark.slow
def test_crashes_are_rows(smith: Smith) -> None:
    error = smith(
        "kernel.compile", "bad.py:bad", "--signature", "*i32", "--sweep", "HOW=abort,segfault,hang,fine",
        "--target", "h100", "--timeout", "5", "--out", "bad", code=1,
    ).error  # fmt: skip
    assert "3 of 4 points did not compile" in error
    for text in ("SIGABRT", "SIGSEGV", "timed out after 5 s"):
        assert text in error
    points = json.loads((smith.cwd / "bad" / "manifest.json").read_text(encoding="utf-8"))["points"]
    assert [point["status"] for point in points] == ["crashed", "crashed", "timeout", "ok"]
    assert points[3]["constexprs"] == {"HOW": "fine", "X": 7}


def test_configs_of_an_autotuner(smith: Smith) -> None:
    done = smith(
        "kernel.compile",
        "bad.py:tuned",
        "--signature",
        "*i32,i32",
        "--sweep",
        "autotune",
        "--target",
        "a100",
        "--json",
    )
    points = json.loads(done.out)["points"]
    assert [point["id"] for point in points] == ["cuda-80-32,BLOCK=64", "cuda-80-32,BLOCK=128"]
    assert points[0]["metadata"]["num_warps"] == 2


@pytest.mark.parametrize("asks", [ASKS[0], *slow(*ASKS[1:])])
@pytest.mark.parametrize("order", ["h100,a100", *slow("a100,h100")])
def test_configs_are_those_of_each_target_in_any_order(smith: Smith, asks: str, order: str) -> None:
    (smith.cwd / "asking.py").write_text(ASKING.format(asks=asks))
    done = smith(
        "kernel.compile", "asking.py", "--signature", "*fp32:16", "--sweep", "autotune", "--target", order,
        "--stage", "ttir", "--json",
    )  # fmt: skip
    answer = json.loads(done.out)
    sizes: dict[str, list[int]] = {}
    for one in answer["points"]:
        assert one["status"] == "ok"
        sizes.setdefault(one["target"], []).append(one["constexprs"]["B"])
    assert sizes == {"cuda:90:32": [64, 128], "cuda:80:32": [16, 32]}
    assert answer["warnings"] == []
    assert set(answer["stand_ins"]) <= {"torch"}


def test_what_a_stand_in_decides_is_told(smith: Smith) -> None:
    (smith.cwd / "asking.py").write_text(ASKING.format(asks="torch.nosuch.thing >= 9"))
    argv = ("kernel.compile", "asking.py:make.inner", "--signature", "*fp32:16,64", "--target", "h100")
    answer = json.loads(smith(*argv, "--stage", "ttir", "--json").out)
    (warning,) = answer["warnings"]
    assert warning == "asking.py:6: the code depends on a comparison of torch.nosuch.thing, a stand-in"
    assert answer["stand_ins"] == {"torch": "asking.py:2", "torch.nosuch.thing": "asking.py:6"}
    assert f"note: {warning}" in smith(*argv, "--stage", "ttir").err


@pytest.mark.slow
def test_a_kernel_of_a_package_can_be_named_by_its_module(smith: Smith) -> None:
    package = smith.cwd / "my_package" / "ops"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").write_text("from my_package.ops.stores import stores\n")
    (package / "__init__.py").touch()
    (package.parent / "consts.py").write_text("ALPHA = 3\n")
    (package / "stores.py").write_text(
        "import triton\nimport triton.language as tl\nfrom my_package.consts import ALPHA\n"
        "A = tl.constexpr(ALPHA)\n@triton.jit\ndef stores(x):\n    tl.store(x, A)\n"
    )
    for name in ("my_package:stores", "my_package.ops.stores:stores", "my_package/ops/stores.py"):
        shown = smith("kernel.show", name, "--signature", "*i32", "--target", "h100", "--stage", "ttir").out
        assert "constant 3" in shown
    error = smith("kernel.show", "my_package.nosuch:k", "--signature", "*i32", code=1).error
    assert "no module my_package.nosuch" in error
    assert "pip install" not in error


@pytest.mark.parametrize(
    ("argv", "code", "what"),
    [
        (["adds.py", "--signature", "i32"], 1, "no such file"),
        (["add.py:addd", "--signature", "i32"], 2, "did you mean 'add'?"),
        (["add.py:add", "--signature", POINTERS], 2, "does not set BLOCK"),
        (["add.py:add", "--signature", f"{POINTERS},64,5"], 2, "has 5 entries"),
        (["add.py:add", "--signature", "*fp31,*fp32,i32,64"], 2, "did you mean 'fp32'?"),
        (["add.py:add", "--signature", "*fp32:4,*fp32,i32,64"], 2, "the hint of x_ptr cannot be '4'"),
        (["add.py:add", "--signature", f"{POINTERS},64", "--target", "h10"], 2, "did you mean 'h100'?"),
        (
            ["add.py:add", "--signature", f"{POINTERS},64", "--option", "maxnregs=3"],
            2,
            "did you mean 'maxnreg'?",
        ),
        (["add.py:add", "--signature", f"{POINTERS},63"], 1, "add.py:14"),
        (["add.py:add", "--signature", f"{POINTERS},64", "--stage", "ttgr"], 2, "did you mean 'ttgir'?"),
        (["asking.py:inner", "--signature", "*fp32"], 2, "asking.py:make.inner"),
        (["--from-cache", "nothing-like-it"], 1, "no entry"),
        (["add.py:add", "--signature", f"{POINTERS},64", "--env", "dev"], 1, "install-triton"),
    ],
)
def test_wrong_input_is_one_clear_error(smith: Smith, argv: list[str], code: int, what: str) -> None:
    error = smith("kernel.compile", *argv, code=code).error
    assert what in error
    assert len(error.splitlines()) < 40


@pytest.mark.slow
def test_a_cache_entry_for_other_targets(smith: Smith) -> None:
    script = smith.cwd / "jit.py"
    script.write_text(
        "import triton\nfrom triton.compiler import ASTSource\n"
        "from triton.backends.compiler import GPUTarget\n"
        "from bad import tuned\n"
        "source = ASTSource(tuned.fn, {'p': '*i32', 'n': 'i32', 'BLOCK': 'constexpr'}, {'BLOCK': 64})\n"
        "triton.compile(source, target=GPUTarget('cuda', 80, 32), options={'num_warps': 8})\n"
    )
    python = smith.env("wheel") / "venv" / "bin" / "python"
    cache = smith.cwd / ".triton" / "cache"
    capture(python, script, env={**smith.environ, "HOME": str(smith.cwd)})
    (name,) = [path.parent.name for path in cache.glob("*/tuned.ttir")]
    done = smith("kernel.compile", "--from-cache", name[:12], "--target", "a100,mi300x", "--json")
    points = json.loads(done.out)["points"]
    assert [(point["target"], point["options"]["num_warps"]) for point in points] == [
        ("cuda:80:32", 8),
        ("hip:gfx942:64", 8),
    ]
    assert all(point["status"] == "ok" for point in points)


def test_a_dry_run_touches_nothing(smith: Smith) -> None:
    script = smith(
        "kernel.compile", "add.py", "--signature", f"{POINTERS},64", "--out", "dry", "--dry-run"
    ).out
    assert re.search(r"/worker'? compile ", script)
    assert not (smith.cwd / "dry").exists()


def test_interrupted_it_leaves_no_compile_behind(smith: Smith, tmp_path: Path) -> None:
    alone = Smith(tmp_path, cwd=smith.cwd)  # other tests compile in the shared workspace at the same time
    python = smith.env("wheel") / "venv" / "bin" / "python"
    argv = ("kernel.compile", "bad.py:bad", "--signature", "*i32,hang", "--target", "h100", "--out", "hangs")
    with alone.running(*argv, "--python", python) as process:
        wait_for(lambda: bool(list((smith.cwd / "hangs").glob("*/log"))), process)
        done = interrupt(process)
    assert done.code == 130
    assert "Traceback" not in done.err
    assert list((alone.home / "kernels" / "work").iterdir())
    assert not list((alone.home / "kernels" / "work").glob("*/cache"))
