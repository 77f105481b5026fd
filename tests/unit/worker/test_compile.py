"""The worker's processes around the compiler: a stand-in for Triton that fails in the ways that one can.

The compiler itself is for tests/integration.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import tracemalloc
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import psutil
import pytest

from tests.support import all_gone, command_of
from tests.unit.worker import preloaded
from tritonsmith import worker
from tritonsmith.compiler import targets
from tritonsmith.worker import compile_point
from tritonsmith.worker.messages import DescribeRequest
from tritonsmith.worker.stage import read_tail
from tritonsmith.worker.surgery import StoppedError

FILES = {
    "__init__.py": """
        from triton import compiler, runtime
        from triton.compiler.compiler import compile
        from triton.runtime.jit import jit
        __version__ = "9.9.9"
    """,
    "language.py": "class constexpr: pass\nclass dtype: pass\nfloat16 = dtype()\n",
    "compiler/__init__.py": "from triton.compiler.compiler import ASTSource\n",
    "compiler/code_generator.py": "",
    "compiler/compiler.py": """
        import collections, dataclasses, os, sys, time
        class ASTSource:
            def __init__(self, fn, signature, constexprs=None, attrs=None):
                self.fn, self.given = fn, dict(signature=signature, constexprs=constexprs, attrs=attrs)
        @dataclasses.dataclass
        class Options:
            num_warps: int = 4
        class Backend:
            def __init__(self, target):
                self.target = target
            def parse_options(self, _):
                if self.target.backend == "hip":
                    return dataclasses.make_dataclass("O", ["num_warps", "waves_per_eu"])(4, 1)
                return Options()
        def make_backend(target):
            if target.backend not in ("cuda", "hip"):
                raise RuntimeError("0 compatible backends")
            return Backend(target)
        class CompilationError(Exception):
            pass
        def compile(src, target, options):
            print("about to compile", file=sys.stderr)
            what = next(iter(src.given["constexprs"].values()), "") if not isinstance(src, str) else ""
            if what == "abort":
                os.abort()
            if what == "exit":
                os._exit(5)
            if what == "hang":
                time.sleep(600)
            if what == "raise":
                raise CompilationError("at 1:1: no")
            metadata = collections.namedtuple("M", ["name", "target"])("k", target)
            given = src if isinstance(src, str) else repr(src.given)
            asm = {"ttir": f"{given} {options}", "cubin": b"\\x7fELF", "unknown": "x"}
            return collections.namedtuple("C", ["asm", "metadata", "src"])(asm, metadata, src)
    """,
    "backends/__init__.py": "",
    "backends/compiler.py": """
        import collections
        GPUTarget = collections.namedtuple("GPUTarget", ["backend", "arch", "warp_size"])
    """,
    "runtime/__init__.py": """
        from triton.runtime import jit as _, cache
        class driver:
            active = None
            @classmethod
            def set_active(cls, one):
                cls.active = one
    """,
    "runtime/cache.py": "",
    "runtime/jit.py": """
        import inspect
        class JITFunction:
            def __init__(self, fn):
                self.fn, self.src = fn, inspect.getsource(fn)
                self.arg_names = list(inspect.signature(fn).parameters)
        jit = JITFunction
    """,
}
KERNEL = (
    "import triton, torch\nprint('imported')\n@triton.jit\ndef k(x, WHAT):\n    pass\nraise SystemExit(3)\n"
)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A folder with a stand-in for Triton and a kernel."""
    for name, text in FILES.items():
        path = tmp_path / "site" / "triton" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = text.splitlines()
        indent = len(lines[1]) - len(lines[1].lstrip()) if text.startswith("\n") else 0
        path.write_text("\n".join(line[indent:] for line in lines) + "\n")
    (tmp_path / "kernel.py").write_text(KERNEL)
    return tmp_path


def append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


def point(name: str, what: str = "", **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "target": ["cuda", 90, 32],
        "signature": {"x": "*fp32", "WHAT": "constexpr"},
        "constexprs": {"WHAT": what},
        "hints": {"x": 16},
        "options": {},
        **more,
    }


def request(place: Path, *points: dict[str, Any], **more: Any) -> Path:
    content = {
        "file": str(place / "kernel.py"),
        "kernel": "k",
        "ir": False,
        "points": points,
        "output": str(place / "out"),
        "scratch": str(place),
        "results": str(place / "results.jsonl"),
        "jobs": 2,
        "timeout": 30,
        "strict": False,
        "keep": [],
        "disassemble": True,
        "stages": ["ttir", "cubin"],
        "stand_ins": ["torch"],
        "gpus": targets.all_gpu_facts(map(targets.parse, ("h100", "a100", "mi300x"))),
        "disassemblers": {
            "cubin": {"stage": "sass", "programs": ["/no/such", "/bin/echo"], "flags": ["read"]}
        },
        **more,
    }
    path = place / "request.json"
    path.write_text(json.dumps(content))
    return path


def described(path: Path) -> str:
    """The request to describe the kernel of a request to compile."""
    whole = json.loads(path.read_text())
    return json.dumps({one.name: whole[one.name] for one in fields(DescribeRequest) if one.name in whole})


def start(place: Path, what: str, argument: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(worker.FOLDER), what, argument],
        env={**os.environ, "PYTHONPATH": str(place / "site")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(place: Path, *points: dict[str, Any], code: int = 0, **more: Any) -> tuple[str, list[dict[str, Any]]]:
    done = preloaded.run(place, "compile", str(request(place, *points, **more)))
    assert done.returncode == code, done.stderr
    lines = (place / "results.jsonl").read_text().splitlines()
    assert not (place / "cache").exists(), "the cache of the run is gone"
    return done.stdout, [json.loads(line) for line in lines]


ENDLESS = "import triton\n{first}\n@triton.jit\ndef k(x, WHAT):\n    ONE\n"
WAIT = """import time
def wait():
    try:
        time.sleep(600)
    except Exception:
        pass
ONE = wait()"""


@pytest.mark.parametrize(
    ("first", "where"),
    [(WAIT, "line 5: time.sleep(600)"), ("from endless import ONE", "line 2: from endless import ONE")],
    ids=["in the file", "in a module"],
)
def test_a_file_that_is_never_loaded_is_a_timeout(place: Path, first: str, where: str) -> None:
    (place / "kernel.py").write_text(ENDLESS.format(first=first))
    (place / "endless.py").write_text("while True:\n    pass\n")
    _, (head, *rows) = run(place, point("one"), point("two"), timeout=1)
    assert head["triton"]
    assert [(row["id"], row["status"]) for row in rows] == [("one", "timeout"), ("two", "timeout")]
    assert {row["error"] for row in rows} == {f"the file was still being loaded after 1 s, in {where}"}
    assert {round(row["seconds"]) for row in rows} == {1}


@pytest.mark.slow
def test_every_way_to_end_is_a_row(place: Path) -> None:
    names = ["fine", "abort", "exit", "raise", "hang", "also-fine"]
    out, (head, *rows) = run(place, *(point(name, name) for name in names), timeout=2)
    found = {row["id"]: row for row in rows}
    statuses = {name: found[name]["status"] for name in names}
    assert statuses == {
        "fine": "ok",
        "abort": "crashed",
        "exit": "crashed",
        "raise": "failed",
        "hang": "timeout",
        "also-fine": "ok",
    }
    assert "SIGABRT" in found["abort"]["error"]
    assert "about to compile" in found["abort"]["log"]
    assert "exit code 5" in found["exit"]["error"]
    assert found["raise"]["error"] == "at 1:1: no"
    assert found["hang"]["error"] == "timed out after 2 s"
    assert out.splitlines()[-1].startswith("[6/6] ")
    assert head["triton"] == "9.9.9"
    assert head["news"]["stand_ins"] == {"torch": "kernel.py:1"}
    assert len(head["file_sha256"]) == 64


def test_files_of_a_point(place: Path) -> None:
    old = place / "out" / "p" / "k.ttir"
    old.parent.mkdir(parents=True)
    old.symlink_to(place / "kernel.py")
    _, (_, row) = run(place, point("p", "x"))
    assert (place / "kernel.py").read_text() == KERNEL, "a link was followed"
    assert (place / "out" / row["stages"]["cubin"]["path"]).read_bytes() == b"\x7fELF"
    sass = place / "out" / row["stages"]["sass"]["path"]
    assert sass.read_text() == "read k.cubin\n"
    assert json.loads((old.parent / "metadata.json").read_text()) == {"name": "k", "target": "cuda:90:32"}
    given = old.read_text()
    assert "'x': '*fp32', 'WHAT': 'constexpr'" in given
    assert "{(1,): 'x'}" in given
    assert "{(0,): [['tt.divisibility', 16]]}" in given


def test_nothing_of_an_earlier_run_is_left_beside_a_failure(place: Path) -> None:
    run(place, point("p", "x"))
    (place / "out" / "p" / "notes.txt").write_text("mine")
    _, (_, row) = run(place, point("p", "raise"))
    assert row["status"] == "failed"
    assert {path.name for path in (place / "out" / "p").iterdir()} == {"log", "notes.txt"}


def test_stages_that_nobody_wants_are_not_kept(place: Path) -> None:
    _, (_, row) = run(place, point("p"), keep=["ttir"])
    assert list(row["stages"]) == ["ttir"]


def test_options_of_another_backend_are_left_out_and_strange_ones_refused(place: Path) -> None:
    amd = point("amd", target=["hip", "gfx942", 64], options={"waves_per_eu": 2})
    _, (head, *rows) = run(place, point("nv", options={"waves_per_eu": 2}), amd)
    assert head["notes"] == ["cuda has no option waves_per_eu: ignored"]
    assert {row["id"]: row["options"] for row in rows} == {"nv": {}, "amd": {"waves_per_eu": 2}}
    _, (refused,) = run(place, point("nv", options={"num_wraps": 2}), code=2)
    assert refused["refused"]["kind"] == "option"
    assert refused["refused"]["parameters"] == ["x", "WHAT"]
    assert "num_warps" in refused["refused"]["names"]


@pytest.mark.parametrize(
    ("text", "kind", "said"),
    [
        ("import triton\nimport gone\nk = gone.k", "import", "No module named 'gone'"),
        ("import triton\nk = 3", "kernel", "k is not a Triton kernel but a int"),
        ("import sys\nk = sys.exit(4)", "file", "this file exits: exit code 4"),
        ("k = 1 / 0", "file", "ZeroDivisionError"),
        ("def k(:", "file", "this Python cannot parse this file"),
        ("k = '\0'", "file", "this Python cannot parse this file"),
        ("import triton\n@triton.jit\ndef kk(): pass", "kernel", "no kernel 'k'"),
        ("import triton\n@triton.jit\ndef k(y): pass", "parameters", "has the parameters y"),
    ],
)
def test_files_that_cannot_be_used(place: Path, text: str, kind: str, said: str) -> None:
    (place / "kernel.py").write_text(text)
    _, (answer,) = run(place, point("p"), code=2)
    assert answer["refused"]["kind"] == kind
    assert said in answer["refused"]["what"]


def test_without_triton(place: Path) -> None:
    (place / "site" / "triton" / "__init__.py").write_text("import no_such_thing")
    _, (answer,) = run(place, point("p"), code=2)
    assert answer["refused"]["kind"] == "triton"
    assert "no_such_thing" in answer["refused"]["why"]


LOG = """\
ptxas-blackwell info    : (C7511) Potential Performance Loss: wgmma instructions are serialized in line 7
ptxas info    : 0 bytes gmem
ptxas /tmp/x.ptx, line 20; warning : Local memory used for this function
ptxas info    : Used 255 registers, used 1 barriers
"""
FINDS = {  # how each line of releases names the ptxas that it runs for a GPU
    "3.0": "def _path_to_binary(name):\n    return PATH, '12.4'\n",
    "3.3": "def get_ptxas(arch):\n    return PATH, '12.8'\n",
    "3.4": "class Tool:\n    path = PATH\ndef get_ptxas():\n    return Tool\n",
    "3.9": "class Tool:\n    path = PATH\ndef get_ptxas(arch: int):\n    return Tool\n",
}


def with_ptxas(place: Path, finds: str, known: str = "'compute_90','sm_80','sm_90','sm_90a'") -> None:
    """A backend whose ptxas says this of itself and that of a kernel."""
    ptxas = place / "ptxas"
    ptxas.write_text(f'#!/bin/sh\n[ "$1" = --help ] && echo "Allowed values: {known}"\n')
    ptxas.chmod(0o755)
    backend = place / "site/triton/backends/nvidia"
    backend.mkdir()
    (backend / "__init__.py").write_text("")
    (backend / "compiler.py").write_text(f"PATH = {str(ptxas)!r}\n{finds}")
    append(
        place / "site/triton/compiler/compiler.py",
        f"""
_quiet = compile
def compile(src, target, options):
    import tempfile
    log = tempfile.NamedTemporaryFile(delete=False, mode="w", suffix=".log")
    log.write({LOG!r})
    log.close()
    made = _quiet(src, target, options)
    os.remove(log.name)
    return made
""",
    )


@pytest.mark.parametrize("version", FINDS)
def test_a_gpu_that_this_ptxas_does_not_know_is_not_compiled_for(place: Path, version: str) -> None:
    with_ptxas(place, FINDS[version])
    points = [point(f"sm_{arch}", "x", target=["cuda", arch, 32]) for arch in (77, 90)]
    amd = point("amd", "x", target=["hip", "gfx942", 64])
    _, (_, *rows) = run(place, *points, amd)
    found = {row["id"]: row for row in rows}
    assert {name: row["status"] for name, row in found.items()} == {
        "sm_77": "failed",
        "sm_90": "ok",
        "amd": "ok",
    }
    what, why = found["sm_77"]["error"].splitlines()
    assert what == "Triton 9.9.9 does not support sm_77"
    assert why == "its ptxas supports sm_80, sm_90; the nearest is sm_80"
    assert "about to compile" not in found["sm_77"]["log"]


@pytest.mark.parametrize("finds", ["", "def get_ptxas(arch):\n    raise RuntimeError('none')\n"])
def test_where_no_ptxas_tells_what_it_knows_all_are_compiled_for(place: Path, finds: str) -> None:
    with_ptxas(place, finds)
    _, (_, row) = run(place, point("p", "x", target=["cuda", 77, 32]))
    assert row["status"] == "ok"


def test_a_ptxas_that_lists_nothing_knows_all(place: Path) -> None:
    with_ptxas(place, FINDS["3.9"], known="")
    _, (_, row) = run(place, point("p", "x", target=["cuda", 77, 32]))
    assert row["status"] == "ok"


def test_what_ptxas_says_is_heard_of_each_point_by_itself(place: Path) -> None:
    with_ptxas(place, FINDS["3.9"])
    _, (_, *rows) = run(place, *(point(name, name) for name in ("a", "raise", "b")), jobs=1)
    found = {row["id"]: row.get("remarks") for row in rows}
    said = [
        "(C7511) Potential Performance Loss: wgmma instructions are serialized in line 7",
        "Local memory used for this function",
    ]
    assert found == {"a": said, "raise": None, "b": said}


def test_where_ptxas_was_not_heard_nobody_says_that_it_was_silent(place: Path) -> None:
    _, (_, row) = run(place, point("p", "x"))
    assert row["remarks"] is None


def test_strict_fails_with_a_point(place: Path) -> None:
    out, _ = run(place, point("p", "raise"), strict=True, code=1)
    assert "at 1:1: no" in out


def test_ir_is_compiled_as_it_is(place: Path) -> None:
    (place / "k.ttgir").write_text("module {}")
    one = point("p", signature={}, constexprs={}, hints={})
    append(
        place / "site/triton/compiler/compiler.py",
        "\n_compile = compile\ndef compile(src, target, options):\n"
        "    made = _compile(src, target, options)\n"
        "    return made._replace(src=collections.namedtuple('S', ['signature'])({0: '*fp32'}))\n",
    )
    _, (_, row) = run(place, one, file=str(place / "k.ttgir"), ir=True, stages=["ttir", "ttgir"])
    assert row["signature"] == {"arg0": "*fp32"}
    assert (place / "out/p/k.ttgir").read_text() == "module {}"


def test_without_fork_each_process_imports_triton(place: Path) -> None:
    threads = (
        "import threading, time\nthreading.Thread(target=time.sleep, args=(3600,), daemon=True).start()\n"
    )
    append(place / "site/triton/language.py", threads)
    append(place / "site/triton/__init__.py", "import triton.language\n")
    out, (_, *rows) = run(place, point("a", "x"), point("b", "abort"), point("c", "x"))
    assert {row["id"]: row["status"] for row in rows} == {"a": "ok", "b": "crashed", "c": "ok"}
    assert "[3/3]" in out


def test_an_interrupt_leaves_nothing_behind(place: Path) -> None:
    path = request(place, *(point(f"p{number}", "hang") for number in range(3)))
    with start(place, "compile", str(path)) as process:
        until = time.monotonic() + 30
        while len(list(place.glob("out/*/log"))) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        children, hanging = [], 0
        while hanging != 2 and time.monotonic() < until:  # those that ask the disassemblers end by themselves
            children = psutil.Process(process.pid).children(recursive=True)
            hanging = sum(bool(command_of(one)) for one in children)
        assert hanging == 2
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 130
    assert all_gone(children)
    assert not (place / "cache").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere they end with their point")
def test_a_killed_worker_leaves_nothing_behind(place: Path) -> None:
    path = request(place, point("p", "hang"))
    with start(place, "compile", str(path)) as process:
        until = time.monotonic() + 30
        while not list(place.glob("out/*/log")) and time.monotonic() < until:
            time.sleep(0.01)
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.communicate(timeout=30)
    assert children
    assert all_gone(children)


def test_describe(place: Path) -> None:
    append(
        place / "site/triton/runtime/jit.py",
        "class Param:\n"
        "    def __init__(self, name):\n"
        "        self.name, self.is_constexpr = name, name.isupper()\n"
        "JITFunction.params = property(lambda self: [Param(name) for name in self.arg_names])\n"
        "class Tuner:\n"
        "    def __init__(self, fn):\n"
        "        self.fn, self.configs = fn, [Config()]\n"
        "class Config:\n"
        "    kwargs, num_warps, num_stages = {'WHAT': 'x', 'waves_per_eu': 2}, 8, None\n",
    )
    (place / "kernel.py").write_text(
        "import triton\nfrom triton.runtime.jit import Tuner\n"
        "@Tuner\n@triton.jit\ndef k(x, n=3, WHAT='y'): pass\n"
    )
    answer = json.loads(preloaded.run(place, "describe", described(request(place, point("p")))).stdout)
    assert answer["parameters"][1] == {"name": "n", "constexpr": False, "has_default": True, "default": 3}
    assert answer["configs"] == [{"values": {"WHAT": "x"}, "options": {"num_warps": 8, "waves_per_eu": 2}}]


def test_a_place_in_the_file_is_named_only_if_there_is_one(place: Path) -> None:
    (place / "kernel.py").write_text("k = '\0'")
    _, (answer,) = run(place, point("p"), code=2)
    assert "null byte" in answer["refused"]["why"]
    assert "line" not in answer["refused"]["why"]


def test_the_cache_of_a_killed_run_goes_with_the_next(place: Path) -> None:
    (place / "cache" / "triton").mkdir(parents=True)
    (place / "cache" / "triton" / "left").touch()
    run(place, point("p", "x"))  # which looks for it


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the children end with their point")
def test_it_ends_with_who_started_it(place: Path) -> None:
    """A tool that is killed frees the lock of its output folder: nobody may go on writing there."""
    path = request(place, point("p", "hang"))
    argv = [sys.executable, str(worker.FOLDER), "compile", str(path)]
    with subprocess.Popen(
        [sys.executable, "-c", f"import subprocess; subprocess.run({argv})"],
        env={**os.environ, "PYTHONPATH": str(place / "site")},
        stdout=subprocess.DEVNULL,
    ) as tool:
        until = time.monotonic() + 30
        below: list[psutil.Process] = []
        while time.monotonic() < until and not (list(place.glob("out/*/log")) and len(below) == 2):
            time.sleep(0.01)
            below = psutil.Process(tool.pid).children(recursive=True)  # what looks around has ended by then
        tool.kill()
    assert len(below) == 2
    assert all_gone(below)
    assert not (place / "cache").exists()


def test_an_error_of_its_own_is_the_last_that_is_printed(place: Path) -> None:
    """Triton's nanobind lists what is left of it at the end of a process: hundreds of lines."""
    append(place / "site/triton/__init__.py", "import atexit\natexit.register(print, 'leaked function')\n")
    path = request(place, point("p", "x"), results="/dev/full")
    with start(place, "compile", str(path)) as process:
        out, err = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "leaked" not in out + err
    assert err.rstrip().splitlines()[-1].startswith("OSError: [Errno 28]")


def test_variables_that_change_the_code_are_told(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = place / "site/triton/_C/libtriton.py"
    library.parent.mkdir()
    (library.parent / "__init__.py").touch()
    library.write_text(
        "def get_cache_invalidating_env_vars(): return {'DISABLE_PTXAS_OPT': 'true', 'GONE': '1'}\n"
    )
    monkeypatch.setenv("DISABLE_PTXAS_OPT", "on")
    _, (head, _) = run(place, point("p", "x"))
    assert head["variables"] == {"DISABLE_PTXAS_OPT": "on"}


def test_why_a_child_cannot_write_is_told(place: Path) -> None:
    path = request(place, point("p", "x"), output="/proc/nowhere")
    with start(place, "compile", str(path)) as process:
        _, err = process.communicate(timeout=30)
    assert "/proc/nowhere" in err


def test_a_file_of_a_package_imports_its_neighbours(place: Path) -> None:
    (place / "kits").mkdir()
    (place / "kits" / "sizes.py").write_text("from .deeper import SIZE\n")
    (place / "kits" / "deeper.py").write_text("SIZE = 64\n")
    kernel = place / "kits" / "kernel.py"
    kernel.write_text("import triton\nfrom .sizes import SIZE\n@triton.jit\ndef k(x, WHAT=SIZE): pass\n")
    _, (_, row) = run(place, point("p", "x"), file=str(kernel))
    assert row["status"] == "ok"


def test_of_a_log_only_the_end_is_read(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"begin\n" + b"x" * 50 + "\r\nä end\n".encode())
    assert read_tail(str(log)) == f"begin\n{'x' * 50}\nä end\n"
    assert read_tail(str(log), most=20) == "ä end\n"
    with log.open("r+b") as file:
        file.truncate(3 << 30)  # a hole: no disk, but as much memory as ever
    tracemalloc.start()
    read_tail(str(log))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20
    assert read_tail(str(tmp_path / "gone")) == ""


def test_a_compile_ends_after_a_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    """What it left is text: the next stage would have changed the module."""

    class Backend:
        def add_stages(self, stages: dict[str, Any], _options: object) -> None:
            stages.update({name: lambda source, _, name=name: [*source, name] for name in ("a", "b", "c")})

    triton, backends = ModuleType("triton"), ModuleType("triton.backends")
    triton.backends = backends  # type: ignore[attr-defined]
    backends.backends = {"cuda": SimpleNamespace(compiler=Backend)}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "triton", triton)
    monkeypatch.setitem(sys.modules, "triton.backends", backends)

    def compiled(last: str) -> tuple[list[str], dict[str, str]]:
        made: dict[str, str] = {}
        source: list[str] = []
        with compile_point.counted(last, made), suppress(StoppedError):
            stages: dict[str, Any] = {}
            Backend().add_stages(stages, None)
            for stage in stages.values():
                source = stage(source, {})
        return source, made

    assert compiled("b") == (["a"], {"a": "['a']", "b": "['a', 'b']"})
    assert compiled("") == compiled("of another backend") == (["a", "b", "c"], {})


def test_a_cache_of_one_run_writes_its_files_without_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class FileCacheManager:
        """As Triton's."""

        cache_dir = str(tmp_path)

        def _make_path(self, filename: str) -> str:
            return str(tmp_path / filename)

        def put(self, content: object, filename: str, binary: bool = True) -> str:
            raise RuntimeError(f"no folder for {filename}: {content!r} {binary}")

    cache = ModuleType("triton.runtime.cache")
    monkeypatch.setitem(sys.modules, "triton.runtime.cache", cache)
    compile_point.write_plainly()  # a Triton that has no such class
    vars(cache)["FileCacheManager"] = FileCacheManager
    compile_point.write_plainly()
    manager = FileCacheManager()
    assert Path(manager.put(b"\0\r\n", "k.cubin")).read_bytes() == b"\0\r\n"
    assert Path(manager.put(7, "k.json", binary=False)).read_text() == "7"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["k.cubin", "k.json"]
    manager.cache_dir = ""
    with pytest.raises(RuntimeError, match="no folder for k"):
        manager.put("", "k.ptx")
