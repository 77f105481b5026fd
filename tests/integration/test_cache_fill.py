"""`cache.fill`: the names of entries are those that Triton's JIT gives them, and a miss is explained."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.harness import Smith, oldest_triton
from tests.support import require
from tritonsmith import worker

OLD = oldest_triton("3.2")
PIP = (sys.executable, "-m", "pip")
PROGRAM = """
import os
import sys
import triton
import triton.language as tl

class Array:
    def __init__(self, address, dtype="float32"):
        self.address, self.dtype = address, dtype
    def data_ptr(self):
        return self.address

def stand_in():
    from triton.backends.compiler import GPUTarget
    from triton.backends.nvidia.driver import ty_to_cpp
    class Driver:
        map_python_to_cpp_type = staticmethod(ty_to_cpp)
        def get_current_target(self): return GPUTarget("cuda", 90, 32)
        def get_current_device(self): return 0
        def get_current_stream(self, device=0): return 0
        def get_benchmarker(self): return None  # which 3.2 asks for at import
    triton.runtime.driver.set_active(Driver())

if len(sys.argv) > 1:
    stand_in()

@triton.jit
def scaled(value, factor):
    return value * factor

@triton.autotune([triton.Config({"BLOCK": size}, num_warps=size // 64) for size in (256, 512)], key=["n"])
@triton.heuristics({"EVEN": lambda given: given["n"] % given["BLOCK"] == 0})
@triton.jit
def scale(x, y, n, one, nothing, factor, flag, BLOCK: tl.constexpr, EVEN: tl.constexpr, KIND: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < n)
    tl.store(y + at, (scaled(value, factor) + one).to(KIND), mask=(at < n) & flag)

@triton.jit
def fill(x, n, MODE: tl.constexpr):
    if MODE == "twos":
        tl.store(x + tl.arange(0, 16), n.to(tl.float32) * 2)
    else:
        tl.store(x + tl.arange(0, 16), n.to(tl.float32))

def launches(call):
    call(scale, Array(256), Array(512), 768, 1, None, 0.5, True, KIND=tl.float32)
    call(scale, Array(260), Array(512), 511, 1, None, 0.5, True, KIND=tl.float16)
    call(fill, Array(0), 3, MODE="twos")
    call(fill, Array(0), 1 << 40, MODE="")

def warm_up(kernel, *args, **kwargs):
    configs, plain = getattr(kernel, "configs", [None]), kernel
    while not isinstance(plain, triton.runtime.JITFunction):
        plain = plain.fn
    for config in configs:
        more = {} if config is None else {"BLOCK": config.kwargs["BLOCK"], "num_warps": config.num_warps}
        if config is not None:
            more["EVEN"] = args[2] % more["BLOCK"] == 0
        compiled = plain.warmup(*args, **kwargs, **more, grid=(1,))
        if "extensions" in sys.argv:
            from triton.backends.nvidia import driver
            if hasattr(driver, "make_launcher"):
                build(lambda: driver.CudaLauncher(compiled.src, compiled.metadata))

def build(act):
    try:
        act()
    except ImportError:
        pass  # the stub has no functions

if __name__ == "__main__":
    if len(sys.argv) == 1:
        def call(kernel, *args, **kwargs):
            kernel[(4,)](*args, **kwargs)
    else:
        call = warm_up
        if "extensions" in sys.argv:
            from triton.backends.nvidia import driver
            build(driver.CudaUtils)
    launches(call)
"""


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool beside a program and its capture, with the newest wheel in the environment `wheel`."""
    require("gcc")
    root = tmp_path_factory.mktemp("programs to warm")
    (root / "program.py").write_text(PROGRAM)
    smith = Smith(root, cwd=root, shared=with_wheel.home)
    smith("kernel.capture", "--env", "wheel", "--device", "h100", "--", "python", "program.py")
    stub = root / "stub"
    stub.mkdir()
    (stub / "empty.c").write_text("")
    argv = ("gcc", "-shared", "-Wl,-soname,libcuda.so.1", "-o", stub / "libcuda.so.1", stub / "empty.c")
    subprocess.run(argv, check=True)
    (stub / "libcuda.so").symlink_to("libcuda.so.1")
    return smith


@pytest.fixture(scope="module")
def newest(smith: Smith) -> Path:
    """Its interpreter."""
    return smith.env("wheel") / "venv" / "bin" / "python"


@pytest.fixture(scope="module")
def older(smith: Smith) -> Path:
    """An interpreter with an older Triton, whose launchers are extensions of their own."""
    venv = smith.root / "older"
    for argv in (
        (sys.executable, "-m", "venv", "--without-pip", venv),
        (*PIP, "--python", venv, "install", "--quiet", "--no-deps", f"triton=={OLD}", "setuptools<80"),
    ):
        subprocess.run(argv, env=smith.environ, check=True, capture_output=True, timeout=600)
    return venv / "bin" / "python"


def filled(smith: Smith, python: Path, out: str, *more: str, code: int = 0) -> dict[str, Any]:
    """Fill a cache, and return what `--json` says."""
    stub = ("--libcuda", str(smith.root / "stub"))
    flags = ("--python", str(python), "--out", out, "--json", *stub, *more)
    answer: dict[str, Any] = json.loads(smith("cache.fill", "captured.toml", *flags, code=code).out)
    return answer


def of_the_jit(smith: Smith, python: Path) -> dict[str, str]:
    """The entries that the JIT and the driver make by themselves: name of the folder to what is in it."""
    cache = smith.root / f"of {python.parents[1].name}"
    stub = str(smith.root / "stub")
    # Triton takes libcuda from the loader's folders only if ldconfig knows none.
    environ = {**smith.environ, "TRITON_CACHE_DIR": str(cache), "LD_LIBRARY_PATH": stub}
    argv = (python, "program.py", "warm", "extensions")
    subprocess.run(argv, cwd=smith.root, env=environ, check=True, timeout=300)
    return {folder.name: next(folder.iterdir()).name for folder in cache.iterdir()}


@pytest.mark.slow
@pytest.mark.parametrize("which", ["newest", "older"])
def test_the_names_are_those_of_the_jit(which: str, smith: Smith, request: pytest.FixtureRequest) -> None:
    python = request.getfixturevalue(which)
    answer = filled(smith, python, f"warm-{which}")
    assert {row["status"] for row in answer["kernels"]} == {"ok"}
    entries = of_the_jit(smith, python)
    missing = {name: what for name, what in entries.items() if name not in answer["added"]}
    # `ldconfig` of a machine with a driver names other folders of libcuda than the stub's.
    assert {what for what in missing.values() if not what.startswith("cuda_utils")} == set()
    assert len(entries) >= 7  # two configs of two launches, two more, and the driver's extension
    for name in answer["added"]:
        for index in (smith.root / f"warm-{which}" / name).glob("__grp__*"):
            paths = json.loads(index.read_text())["child_paths"].values()
            assert all(Path(path).is_file() for path in paths)


@pytest.fixture(scope="module")
def warm(smith: Smith, newest: Path) -> Path:
    """A cache that is filled for the newest Triton; tests leave it as it is."""
    filled(smith, newest, "warm")
    return smith.root / "warm"


@pytest.mark.slow
def test_a_program_on_a_filled_cache_misses_nothing(smith: Smith, newest: Path, warm: Path) -> None:
    before = sorted(path for path in warm.rglob("*"))
    flags = ("--verify", "--cache", "warm", "--python", str(newest))
    done = smith("cache.fill", *flags, "--", "python", "program.py", "warm")
    assert "6 kernels looked up, nothing was compiled" in done.out
    assert sorted(path for path in warm.rglob("*")) == before


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "variables", "differs"),
    [
        (
            "value * factor",
            "factor * value",
            {},
            "source: the kernel, or a function or constant that it uses",
        ),
        ("num_warps=size // 64", "num_warps=8", {}, "option num_warps: 8 here, 4 in the cache"),
        ("Array(0), 3,", "Array(0), 32,", {}, "multiple of 16: n: 16 here, none in the cache"),
        ('MODE="twos")', 'MODE="one")', {}, "constant (2,): one here, twos in the cache"),
        ("class Array:", "\nclass Array:", {}, "source: line"),
        ("", "", {"DISABLE_LLVM_OPT": "1"}, "variable DISABLE_LLVM_OPT: true here, none in the cache"),
    ],
    ids=["function", "option", "argument", "constant", "line", "variable"],
)
def test_a_miss_names_the_part_of_the_key_that_differs(
    old: str, new: str, variables: dict[str, str], differs: str, smith: Smith, newest: Path, warm: Path
) -> None:
    assert warm.is_dir()
    program = smith.root / "changed" / "program.py"
    program.parent.mkdir(exist_ok=True)
    assert old in PROGRAM
    program.write_text(PROGRAM.replace(old, new, 1) if old else PROGRAM)
    tool = Smith(smith.root, cwd=smith.root, more=variables, shared=smith.shared)
    flags = ("--verify", "--cache", "warm", "--python", str(newest), "--json")
    done = tool("cache.fill", *flags, "--", "python", str(program), "warm", code=1)
    answer = json.loads(done.out)
    assert any(text.startswith(differs) for miss in answer["misses"] for text in miss["differences"]), answer


@pytest.mark.slow
def test_an_image_checks_the_cache_that_it_takes_along(smith: Smith, newest: Path) -> None:
    image = smith.root / "image"

    def written(*more: str) -> None:
        flags = (
            "--warm",
            "captured.toml",
            "--python",
            str(newest),
            "--out",
            "image",
            "--at",
            str(image / "cache"),
        )
        libcuda = ("--libcuda", str(smith.root / "stub"))
        assert (
            "docker build --build-arg IMAGE=NAME"
            in smith("editor", "--container", *flags, *libcuda, *more).out
        )

    def checked(**variables: str) -> tuple[int, str]:
        """Run the last line of the first stage, as a builder would."""
        line = next(
            line for line in (image / "Dockerfile").read_text().splitlines() if line.startswith("RUN ")
        ).removeprefix("RUN ")
        line = line.replace("/opt/tritonsmith-check", shlex.quote(str(image / "check")))
        environ = {**smith.environ, "PYTHON": str(newest), **variables}
        done = subprocess.run(["sh", "-c", line], env=environ, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout

    written()
    code, said = checked()
    assert (code, said[: said.index("Triton") + len("Triton")]) == (0, "the cache is valid for Triton")
    assert {path.name for path in image.iterdir()} == {"Dockerfile", "cache", "check"}
    assert sorted(path.name for path in (image / "check").glob("*.py")) == sorted(
        path.name for path in worker.FOLDER.glob("*.py")
    )
    code, said = checked(DISABLE_LLVM_OPT="1")
    assert code == 1
    assert "DISABLE_LLVM_OPT was not set" in said
    code, said = checked(PYTHON=sys.executable)
    assert code == 1
    assert "cannot import Triton" in said
    # The second run is for an image whose Triton lies elsewhere: another key, so one more entry.
    before = {path.name for path in (image / "cache").iterdir()}
    written("--triton-at", "/opt/venv/triton")
    assert len({path.name for path in (image / "cache").iterdir()} - before) == 2
    code, said = checked()
    assert code == 1
    assert "its C extensions are for Triton in /opt/venv/triton, not in " in said
    (image / "Dockerfile").write_text("FROM mine\n")
    again = smith(
        "editor", "--container", "--warm", "captured.toml", "--python", str(newest), "--out", "image", code=1
    )
    assert "this folder has another Dockerfile" in again.error
    assert (image / "Dockerfile").read_text() == "FROM mine\n"


@pytest.mark.slow
@pytest.mark.parametrize("gone", ["scale.cubin", "__grp__scale.json"])
def test_a_damaged_entry_is_missed_and_then_completed(
    gone: str, smith: Smith, newest: Path, warm: Path
) -> None:
    hurt = smith.root / f"hurt {gone}"
    shutil.copytree(warm, hurt)
    file = next(hurt.glob(f"*/{gone}"))
    file.unlink()
    verify = ("cache.fill", "--verify", "--cache", str(hurt), "--python", str(newest))
    done = smith(*verify, "--", "python", "program.py", "warm", code=1)
    assert "6 kernels looked up, 1 compiled, 0 C extensions built" in done.out
    assert "damaged" in done.out
    again = ("captured.toml", "--python", str(newest), "--into", str(hurt), "--yes", "--json")
    answer = json.loads(smith("cache.fill", *again, "--libcuda", str(smith.root / "stub")).out)
    # The cache was copied, so all indexes named files of the other folder.
    assert file.parent.name in answer["repaired"]
    assert len(answer["repaired"]) == 6
    done = smith(*verify, "--", "python", "program.py", "warm")
    assert "6 kernels looked up, nothing was compiled" in done.out
    assert "every look-up misses" not in done.err


@pytest.mark.slow
def test_entries_of_somebody_else_that_name_another_folder_are_listed(
    smith: Smith, newest: Path, warm: Path
) -> None:
    moved = smith.root / "somebody else's"
    shutil.copytree(warm, moved)
    (moved / "tritonsmith-filled.json").unlink()
    before = {path: path.read_bytes() for path in moved.rglob("*") if path.is_file()}
    flags = ("captured.toml", "--python", str(newest), "--into", str(moved), "--yes")
    done = smith("cache.fill", *flags, "--libcuda", str(smith.root / "stub"), code=1)
    assert "6 entries left alone" in done.out
    assert {path: path.read_bytes() for path in before} == before


@pytest.mark.slow
def test_an_annotated_integer_is_filled_for_1_and_other_numbers(smith: Smith, newest: Path) -> None:
    (smith.root / "annotated.py").write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef put(x, n: tl.int64):\n"
        "    tl.store(x, n.to(tl.float32))\n\nif __name__ == '__main__':\n"
        "    from program import Array, stand_in\n    stand_in()\n"
        "    for n in (1, 3):\n        put.warmup(Array(0), n, grid=(1,))\n"
    )
    (smith.root / "annotated.toml").write_text(
        '[[kernel]]\nfile = "annotated.py"\nkernel = "put"\nsignature = "*fp32:16,i64"\ntargets = ["h100"]\n'
    )
    flags = ("--python", str(newest), "--out", "annotated", "--no-extensions", "--json")
    assert len(json.loads(smith("cache.fill", "annotated.toml", *flags).out)["added"]) == 2
    verify = ("--verify", "--cache", "annotated", "--python", str(newest))
    done = smith("cache.fill", *verify, "--", "python", "annotated.py")
    assert "2 kernels looked up, nothing was compiled" in done.out


@pytest.mark.slow
def test_into_asks_and_leaves_what_is_there(smith: Smith, newest: Path, warm: Path) -> None:
    mine = smith.root / "mine"
    shutil.copytree(warm, mine)
    kept = next(mine.glob("*/fill.ptx"))
    kept.write_text("mine")
    gone = next(path.parent for path in mine.glob("*/scale.ptx"))
    shutil.rmtree(gone)
    flags = (
        "captured.toml",
        "--python",
        str(newest),
        "--into",
        "mine",
        "--libcuda",
        str(smith.root / "stub"),
    )
    done = smith("cache.fill", *flags, code=1)
    assert "there is no terminal to ask in" in done.error
    assert not gone.exists()
    done = smith("cache.fill", *flags, "--yes")
    assert "1 entry added" in done.out
    assert kept.read_text() == "mine"
    assert (gone / "scale.ptx").is_file()


@pytest.mark.slow
def test_without_a_compiler_kernels_are_filled_and_the_rest_is_said(smith: Smith, newest: Path) -> None:
    tools = smith.root / "no compiler"
    tools.mkdir()
    for name in ("sh", "env", "ldconfig", "uname", "git"):
        if (path := shutil.which(name)) is not None:
            (tools / name).symlink_to(path)
    tool = Smith(smith.root, cwd=smith.root, more={"PATH": str(tools)}, shared=smith.shared)
    answer = filled(tool, newest, "bare", code=1)
    assert answer["why_no_extensions"] == "there is no C compiler: neither gcc, nor clang, nor CC"
    assert {row["status"] for row in answer["kernels"]} == {"ok"}
    assert filled(tool, newest, "bare2", "--no-extensions")["extensions"] is False


@pytest.mark.slow
def test_a_kernel_that_does_not_compile_is_named_and_the_others_are_written(
    smith: Smith, newest: Path
) -> None:
    broken = smith.root / "broken.py"
    broken.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef bad(x, N: tl.constexpr):\n"
        "    tl.store(x + tl.arange(0, N), tl.zeros([3], tl.float32))\n\n@triton.jit\ndef good(x):\n"
        "    tl.store(x, 1.0)\n"
    )
    rows = ('"bad"\nsignature = "*fp32:16,N=16"', '"good"\nsignature = "*fp32:16"')
    text = "".join(f'[[kernel]]\nfile = "broken.py"\ntargets = ["h100"]\nkernel = {row}\n' for row in rows)
    (smith.root / "broken.toml").write_text(text)
    flags = ("--python", str(newest), "--out", "half", "--no-extensions", "--json")
    answer = json.loads(smith("cache.fill", "broken.toml", *flags, code=1).out)
    status = {row["name"]: row["status"] for row in answer["kernels"]}
    assert status == {"bad": "failed", "good": "ok"}
    assert len(answer["added"]) == 1


def test_a_place_that_cannot_be_written_to_is_an_error_before_any_compile(smith: Smith, newest: Path) -> None:
    flags = ("captured.toml", "--python", str(newest), "--out", "program.py/warm")
    assert "this is not a folder" in smith("cache.fill", *flags, code=1).error
    assert "--out is not empty" in smith("cache.fill", *flags[:-1], "stub", code=2).error
    # What a fill has left that was stopped is no reason to refuse the same command.
    (smith.root / "stopped" / ".tritonsmith-trash-fill").mkdir(parents=True)
    smith("cache.fill", *flags[:-1], "stopped", "--dry-run")
    assert "give either --out or --into" in smith("cache.fill", "captured.toml", code=2).error


def test_a_cache_that_nothing_has_filled_cannot_be_verified(smith: Smith) -> None:
    done = smith("cache.fill", "--verify", "--cache", "stub", "--", "python", "program.py", code=1)
    assert "this cache has no record of a fill" in done.error
