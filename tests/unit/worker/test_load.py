"""How the worker loads a kernel's file: packages, what is not installed, and the GPU of each target."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.worker import preloaded
from tests.unit.worker.test_compile import append, described, point, request, run
from tests.unit.worker.test_compile import place as place  # noqa: PLC0414 - a fixture
from tritonsmith.compiler import targets
from tritonsmith.worker.load import package_of

HEAD = "import triton\nimport triton.language as tl\n"
TRITON = """
class Param:
    def __init__(self, name):
        self.name, self.is_constexpr = name, name.isupper()
JITFunction.params = property(lambda self: [Param(name) for name in self.arg_names])
class Config:
    num_warps = num_stages = None
    def __init__(self, kwargs):
        self.kwargs = kwargs
class Autotuner:
    def __init__(self, fn, configs):
        self.fn, self.configs = fn, configs
def autotune(configs, key):
    return lambda fn: Autotuner(fn, configs)
"""
TUNED = """
@triton.autotune([triton.Config({"B": b}) for b in ([64, 128] if BIG else [16, 32])], key=[])
@triton.jit
def k(x, B): pass
"""

Answer = dict[str, Any]
Describe = Callable[..., Answer]


@pytest.fixture
def describe(place: Path) -> Describe:
    """What the worker says of `k` in a file of this text, for a target."""
    append(place / "site/triton/runtime/jit.py", TRITON)
    append(place / "site/triton/__init__.py", "from triton.runtime.jit import Config, autotune\n")
    language = place / "site/triton/language.py"
    language.write_text(
        "class constexpr:\n    def __init__(self, value): self.value = value\nclass dtype: pass\n"
    )

    def describe(
        text: str, target: str = "h100", kernel: str = "k", file: str = "kernel.py"
    ) -> dict[str, Any]:
        path = place / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(HEAD + text)
        one = targets.parse(target)
        asked = point("p", target=[one.backend, one.arch, one.warp_size])
        content = described(request(place, asked, file=str(path), kernel=kernel))
        done = preloaded.run(place, "describe", content)
        assert done.returncode == 0, done.stderr
        answer: dict[str, Any] = json.loads(done.stdout)
        return answer

    return describe


def install_torch(place: Path, cuda: str = "") -> None:
    """A small torch without a driver."""
    files = {
        "__init__.py": "from torch import cuda, version, backends\n",
        "version.py": "cuda = hip = None\n",
        "cuda.py": cuda or "def get_device_capability(): raise RuntimeError('no driver')\n",
        "backends/__init__.py": "from torch.backends import cuda\n",
        "backends/cuda.py": "def is_built(): return False\n",
    }
    for name, text in files.items():
        path = place / "site" / "torch" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def default(answer: dict[str, Any]) -> Any:
    return answer["parameters"][-1]["default"]


def sizes(answer: dict[str, Any]) -> list[int]:
    return [config["values"]["B"] for config in answer["configs"]]


def test_an_optional_module_of_an_installed_package_is_not_there(place: Path, describe: Describe) -> None:
    install_torch(place)
    answer = describe(
        "import torch\ntry:\n    import torch.nosuch\n    HAVE = 1\nexcept ImportError:\n    HAVE = 0\n"
        "@triton.jit\ndef k(x, HAVE=HAVE): pass\n"
    )
    assert default(answer) == 0


@pytest.mark.parametrize(
    "text",
    [
        "T = GPU.get_current_target()\nBIG = T.backend == 'cuda' and T.arch >= 90\n",
        "P = GPU.utils.get_device_properties(0)\nBIG = P['max_shared_mem'] >= 200000\n",
        "import torch\nBIG = torch.cuda.get_device_capability()[0] >= 9 and torch.version.hip is None\n",
    ],
)
@pytest.mark.parametrize("torch", ["installed", "replaced"])
def test_configs_are_those_of_the_target(place: Path, describe: Describe, text: str, torch: str) -> None:
    if torch == "installed":
        install_torch(place)
    for target, wanted in (("h100", [64, 128]), ("a100", [16, 32]), ("mi300x", [16, 32])):
        answer = describe(f"GPU = triton.runtime.driver.active\n{text}{TUNED}", target)
        assert sizes(answer) == wanted
        assert answer["asked"]
    assert not describe("BIG = True\n" + TUNED)["asked"]


def test_a_class_may_inherit_from_what_is_not_installed(place: Path, describe: Describe) -> None:
    (place / "kits").mkdir()
    (place / "kits" / "__init__.py").touch()
    (place / "kits" / "h.py").write_text(
        "import torch\nclass F(torch.autograd.Function):\n    pass\nf = F.apply\n"
    )
    text = "from .h import f\n@triton.jit\ndef k(x, N=4 if f is None else 5): pass\n"
    assert default(describe(text, file="kits/k.py")) == 5


def test_the_root_of_its_own_package_is_where_it_imports_from(place: Path, describe: Describe) -> None:
    for folder in ("mine", "mine/ops"):
        (place / folder).mkdir()
        (place / folder / "__init__.py").touch()
    (place / "mine" / "consts.py").write_text("ALPHA = 3\n")
    (place / "mine" / "ops" / "json.py").write_text("raise SystemError('this is not the json of Python')\n")
    text = (
        "import json\nfrom mine.consts import ALPHA\n@triton.jit\ndef k(x, N=json.loads('2') + ALPHA): pass\n"
    )
    assert default(describe(text, file="mine/ops/k.py")) == 5


def test_what_a_package_does_beside_is_not_needed(place: Path, describe: Describe) -> None:
    (place / "mine").mkdir()
    (place / "mine" / "__init__.py").write_text("NAME = 'mine'\nimport compiled_extension_that_is_not_here\n")
    (place / "mine" / "consts.py").write_text("ALPHA = 3\n")
    text = "from mine.consts import ALPHA\n@triton.jit\ndef k(x, WHAT=ALPHA): pass\n"
    assert default(describe(text, file="mine/k.py")) == 3
    _, (head, _) = run(place, point("p"), file=str(place / "mine" / "k.py"))
    (note,) = head["news"]["doubts"]
    assert "mine/__init__.py failed: No module named 'compiled_extension" in note


INNER = """
def make({heads}):
    @triton.jit
    def k(x, N=7): pass
    return k
kernel = make({values})
"""


@pytest.mark.parametrize(
    ("heads", "values", "name"),
    [("", "", "kernel"), ("", "", "make.k"), ("n, m=2", "3", "kernel"), ("n=1", "", "make.k")],
)
def test_a_kernel_inside_of_a_function_can_be_named(
    describe: Describe, heads: str, values: str, name: str
) -> None:
    assert default(describe(INNER.format(heads=heads, values=values), kernel=name)) == 7


def test_a_kernel_inside_of_a_function_that_needs_arguments_is_told_so(describe: Describe) -> None:
    about = describe(INNER.format(heads="n, m=2", values="3"), kernel="make.k")["refused"]
    assert about["what"] == "make() defines the kernel, but needs arguments: n"
    assert describe(INNER.format(heads="", values=""), kernel="make.q")["refused"]["kind"] == "kernel"


def test_a_module_that_makes_its_names_when_asked(describe: Describe) -> None:
    text = "def __getattr__(name):\n    return triton.jit(made)\ndef made(x, N=9): pass\n"
    assert default(describe(text)) == 9


TWO = "@triton.jit\ndef h(x): C\n@triton.jit\ndef k(x): h(x)\n"
OF_B = "@triton.autotune([triton.Config({'B': B})], key=[])\n@triton.jit\ndef k(x, B): pass\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "import torch\nC = tl.constexpr(torch.nosuch.x)\n@triton.jit\ndef k(x): C\n",
            "C of k is torch.nosuch.x",
        ),
        ("import torch\nC: tl.constexpr = torch.x\n@triton.jit\ndef k(x): C\n", "C of k is torch.x"),
        ("import torch\nC: 'Later' = torch.x\n@triton.jit\ndef k(x): C\n", "C of k is torch.x"),
        ("import torch\nif 1:\n  C: tl.constexpr = torch.x\n@triton.jit\ndef k(x): C\n", "C of k is torch.x"),
        (f"import torch\nC = tl.constexpr(torch.x)\n{TWO}", "C of h is torch.x"),
        ("import torch\n@triton.jit\ndef k(x, N=torch.x): pass\n", "a value of the kernel is torch.x"),
        ("import torch\nB = range(torch.x)\n@triton.jit\ndef k(x, N=B): 1\n", "the number of torch.x"),
        (f"import torch\nB = torch.x\n{OF_B}", "a value of the kernel is torch.x"),
        (
            f"import torch\nB = 1\n{OF_B}k.configs[0].num_warps = torch.x\n",
            "a value of the kernel is torch.x",
        ),
        ("import torch\nk = torch.nosuch.k\n", "k is not a Triton kernel but torch.nosuch.k"),
    ],
)
def test_a_stand_in_never_gets_into_the_code(describe: Describe, text: str, said: str) -> None:
    about = describe(text)["refused"]
    assert said in about["what"]


def test_annotations_are_what_the_file_says(describe: Describe) -> None:
    """Texts only where the file asks for that: Triton's aggregates, for one, want types."""
    text = "def f(x: 3): pass\nN = f.__annotations__['x']\n@triton.jit\ndef k(x, N=N): pass\n"
    assert describe(text)["parameters"][1]["default"] == 3


def add_heuristics(place: Path) -> None:
    append(
        place / "site/triton/runtime/jit.py",
        "class Heuristics:\n    def __init__(self, fn, values): self.fn, self.values = fn, values\n"
        "def heuristics(values):\n    return lambda fn: Heuristics(fn, values)\n",
    )
    append(place / "site/triton/__init__.py", "from triton.runtime.jit import heuristics\n")


@pytest.mark.usefixtures("describe")
def test_what_a_stand_in_decides_is_told_or_refused(place: Path) -> None:
    add_heuristics(place)
    (place / "kernel.py").write_text(
        HEAD + "import torch\nN = 4 if torch.has_magic else 5\n"
        "@triton.heuristics({'WHAT': lambda args: 4 if torch.more_magic else 5})\n@triton.jit\n"
        "def k(x, WHAT, N=N): pass\n"
    )
    signature = {"x": "*fp32", "WHAT": "constexpr", "N": "constexpr"}
    heuristic = point("heuristic", signature=signature, constexprs={"N": 5})
    _, (head, row) = run(place, heuristic)
    assert head["news"]["doubts"] == [
        "kernel.py:4: the code depends on the truth value of torch.has_magic, a stand-in"
    ]
    assert head["news"]["stand_ins"]["torch.has_magic"] == "kernel.py:4"
    assert row["status"] == "failed"
    assert row["error"].strip() == "the truth value of torch.more_magic is needed, but torch is not installed"
    assert any("torch.more_magic" in text for text in row["news"]["doubts"])


ASKS = "triton.runtime.driver.active.get_current_target().arch"


def counted(place: Path, value: str) -> Path:
    """A kernel whose default comes from a module beside it, and a file with a line for each load of that."""
    loads = place / "loads"
    text = f"import triton\nBIG = {value}\nopen({str(loads)!r}, 'a').write(f'{{BIG}}\\n')\n"
    (place / "sizes.py").write_text(text)
    (place / "kernel.py").write_text(HEAD + "from sizes import BIG\n@triton.jit\ndef k(x, WHAT=BIG): pass\n")
    append(
        place / "site/triton/compiler/compiler.py",
        "\n_compile = compile\ndef compile(src, target, options):\n"
        "    src.given['default'] = src.fn.fn.__defaults__\n    return _compile(src, target, options)\n",
    )
    return loads


@pytest.mark.parametrize("first", ["h100", "a100"])
def test_a_file_that_asks_is_loaded_once_for_each_target_with_all_that_it_imports(
    place: Path, first: str
) -> None:
    """Modules that it imports may ask, too: they must not keep what was said of another GPU."""
    loads = counted(place, f"{ASKS} >= 90")
    archs = [90, 80] if first == "h100" else [80, 90]
    points = [
        point(f"{arch}-{number}", "x", target=["cuda", arch, 32]) for arch in archs for number in range(3)
    ]
    _, (_, *rows) = run(place, *points)
    assert [row["status"] for row in rows] == ["ok"] * 6
    for row in rows:
        text = (place / "out" / row["stages"]["ttir"]["path"]).read_text()
        assert f"'default': ({row['target'] == 'cuda:90:32'},)" in text
    assert sorted(loads.read_text().splitlines()) == ["False", "True"]


def test_what_a_heuristic_remembers_of_one_gpu_is_not_told_of_another(place: Path) -> None:
    add_heuristics(place)
    (place / "kernel.py").write_text(
        f"import functools\n{HEAD}@functools.lru_cache\ndef arch():\n    return {ASKS}\n"
        "@triton.heuristics({'WHAT': lambda args: arch()})\n@triton.jit\ndef k(x, WHAT): pass\n"
    )
    points = [
        point(f"{arch}-{number}", target=["cuda", arch, 32], constexprs={})
        for arch in (90, 80)
        for number in range(2)
    ]
    _, (_, *rows) = run(place, *points, jobs=1)
    found = {row["id"]: row["constexprs"]["WHAT"] for row in rows}
    assert found == {"90-0": 90, "90-1": 90, "80-0": 80, "80-1": 80}


def test_a_file_that_does_not_ask_is_loaded_once(place: Path) -> None:
    loads = counted(place, "3")
    points = [point(f"{arch}", "x", target=["cuda", arch, 32]) for arch in (90, 80)]
    _, (_, *rows) = run(place, *points)
    assert [row["status"] for row in rows] == ["ok"] * 2
    assert len(loads.read_text().splitlines()) == 1


NEW, OLD, AMD = ["cuda", 90, 32], ["cuda", 80, 32], ["hip", "gfx942", 64]
REFUSES = (
    f"def size():\n    if {ASKS} {{condition}}:\n        raise ValueError('not for this')\n"
    "    return 1\nN = size()\n@triton.jit\ndef k(x, WHAT=N): pass\n"
)


@pytest.mark.parametrize("order", [(NEW, OLD), (OLD, NEW)])
def test_a_file_that_refuses_one_gpu_compiles_for_the_others(
    place: Path, order: tuple[list[Any], ...]
) -> None:
    (place / "kernel.py").write_text(HEAD + REFUSES.format(condition="< 90"))
    _, (_, *rows) = run(place, *(point(str(target[1]), "x", target=target) for target in order))
    assert {row["id"]: row["status"] for row in rows} == {"90": "ok", "80": "failed"}
    (error,) = [row["error"] for row in rows if row["id"] == "80"]
    assert "ValueError: not for this" in error
    assert "line 5" in error


def test_a_file_that_refuses_every_gpu_is_refused(place: Path) -> None:
    (place / "kernel.py").write_text(HEAD + REFUSES.format(condition="> 0"))
    _, lines = run(place, point("new", "x"), point("old", "x", target=OLD), code=2)
    assert lines[-1]["refused"]["what"] == "cannot run this file: ValueError: not for this"


@pytest.mark.parametrize("order", [(NEW, AMD), (AMD, NEW)])
def test_the_parameters_are_looked_at_for_each_target(place: Path, order: tuple[list[Any], ...]) -> None:
    """Those of a kernel for another GPU would be taken for its own."""
    backend = ASKS.replace("arch", "backend")
    (place / "kernel.py").write_text(
        f"{HEAD}if {backend} == 'hip':\n    @triton.jit\n    def k(x, y, WHAT): pass\n"
        "else:\n    @triton.jit\n    def k(x, WHAT): pass\n"
    )
    points = [point(target[0], "x", target=target) for target in order]
    _, (_, *rows) = run(place, *points)
    assert {row["id"]: row["status"] for row in rows} == {"cuda": "ok", "hip": "failed"}
    (error,) = [row["error"] for row in rows if row["id"] == "hip"]
    assert error == "k has the parameters x, y, WHAT\nthe request has x, WHAT"


@pytest.mark.usefixtures("describe")
@pytest.mark.parametrize(
    ("head", "said"),
    [
        (
            "@torch.tuner(configs=[1])\n@triton.jit\ndef k(x, WHAT): pass",
            "kernel.py:4: @torch.tuner() removed from k",
        ),
        ("@triton.jit\n@torch.wrap\ndef k(x, WHAT): pass", "kernel.py:5: @torch.wrap removed from k"),
        (
            "@torch.wrap\n@triton.jit\ndef h(x): pass\n@triton.jit\ndef k(x, WHAT): h(x)",
            "kernel.py:4: @torch.wrap removed from h",
        ),
        (
            "@torch.entry()\n@triton.autotune([], key=[])\n@triton.jit\ndef k(x, WHAT): pass",
            "kernel.py:4: @torch.entry() removed from k",
        ),
        ("@torch.no_grad()\ndef size(): return 1\nN = size()\n@triton.jit\ndef k(x, WHAT=N): pass", ""),
    ],
)
def test_a_decorator_that_is_not_installed_is_missed_on_a_kernel(place: Path, head: str, said: str) -> None:
    append(place / "site/triton/runtime/jit.py", "JITFunction.__call__ = None\n")
    (place / "kernel.py").write_text(f"{HEAD}import torch\n{head}\n")
    _, (first, row) = run(place, point("p", "x"))
    assert row["status"] == "ok"
    rest = ": torch is not installed; its configs etc. are lost"
    assert first["news"]["doubts"] == ([said + rest] if said else [])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("N = 1 if torch.x.y is None else 2", "the identity of torch.x.y"),
        ("N = 1 if x is not None else 2", "the identity of torch.x"),
        ("def f():\n    return 1 if torch.x() is None else 2\nN = f()", "the identity of torch.x"),
        ("N = isinstance(torch.nn.x, int)", "the class of torch.nn.x"),
        ("N = 1 if torch is None or torch.version.hip is None else 2", ""),
        ("N = 1 if torch.cuda.is_available() is True else 2", ""),
    ],
)
def test_an_identity_of_a_stand_in_is_read_in_the_text(place: Path, text: str, said: str) -> None:
    (place / "kernel.py").write_text(
        f"{HEAD}import torch, torch.nn\nfrom torch import x\n{text}\n@triton.jit\ndef k(x, WHAT=N): pass\n"
    )
    _, (head, row) = run(place, point("p", "x"))
    assert row["status"] == "ok"
    line = 6 if "def f" in text else 5
    assert head["news"]["doubts"] == (
        [f"kernel.py:{line}: the code depends on {said}, a stand-in"] if said else []
    )


def test_the_package_of_relative_imports(tmp_path: Path) -> None:
    inner = tmp_path / "top" / "inner"
    inner.mkdir(parents=True)
    path = str(inner / "k.py")

    def found(text: str) -> tuple[str, str]:
        return package_of(path, ast.parse(text).body)

    assert found("import x") == ("", "")
    assert found("from .x import y") == ("inner", str(tmp_path / "top"))
    assert found("if z:\n  from ..x import y") == ("top.inner", str(tmp_path))
    (inner / "__init__.py").touch()
    (inner.parent / "__init__.py").touch()
    assert found("from . import y") == ("top.inner", str(tmp_path)), "as far as there are packages"
    assert found("from " + "." * 99 + "x import y") == ("", "")


HAS_TRITON = "import torch\nfrom torch.utils._triton import has_triton\nif has_triton():\n"


@pytest.mark.parametrize("torch", ["installed", "replaced"])
def test_torch_tells_a_package_that_there_is_triton(place: Path, describe: Describe, torch: str) -> None:
    # torchao defines its kernels below `if torch_version_at_least("2.7.0") and has_triton():`
    if torch == "installed":
        install_torch(place)
        utils = place / "site/torch/utils"
        utils.mkdir()
        (utils / "__init__.py").write_text("")
        (utils / "_triton.py").write_text(
            "import torch\n"
            "def has_triton(): return False\n"
            "def has_triton_tma(): return torch.cuda.get_device_capability() >= (9, 0)\n"
        )
    text = f"{HAS_TRITON}    @triton.jit\n    def k(x, N=has_triton()): pass\n"
    assert default(describe(text)) is True
    for target, wanted in (("h100", True), ("a100", False)) if torch == "installed" else ():
        tma = "from torch.utils._triton import has_triton_tma\nHAS = has_triton_tma()\n"
        assert default(describe(f"{tma}@triton.jit\ndef k(x, N=HAS): pass\n", target)) is wanted


def test_the_condition_that_leaves_a_kernel_out_is_shown(describe: Describe) -> None:
    text = "import sys\nif sys.version_info < (3,):\n    @triton.jit\n    def k(x): pass\n"
    refused = describe(text)["refused"]
    assert refused["what"] == "k is not defined here"
    assert "line 4 leaves it out" in refused["why"]
    assert "if sys.version_info < (3,):" in refused["why"]
    assert refused["names"] == []


@pytest.mark.parametrize("file", ["kernel.py", "site/flag_gems/ops/k.py"])  # of a user, and its own
def test_a_package_that_would_ask_programs_of_the_driver_is_told(
    place: Path, describe: Describe, file: str
) -> None:
    package = place / "site/flag_gems/__init__.py"
    package.parent.mkdir(parents=True)
    package.write_text("import os\nVENDOR = os.environ.get('GEMS_VENDOR', 'unknown')\n")
    (package.parent / "ops").mkdir()
    (package.parent / "ops/__init__.py").write_text("")
    text = "import flag_gems\n@triton.jit\ndef k(x, N=flag_gems.VENDOR): pass\n"
    for target, wanted in (("h100", "nvidia"), ("mi300x", "amd")):
        answer = describe(text, target, file=file)
        assert default(answer) == wanted
        assert answer["asked"]  # for another target it is loaded again
