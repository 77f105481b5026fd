"""What a package uses of another one that lacks it, by the files of both."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.facts.installs import put
from tritonsmith.facts import missing_names
from tritonsmith.facts.missing_names import MissingName

pytestmark = pytest.mark.unit

TRITON = {
    "triton/__init__.py": "from . import language\nfrom .runtime import jit\n",
    "triton/runtime/__init__.py": "from .jit import jit\n__all__ = ['jit']\n",
    "triton/runtime/jit.py": "def jit(fn): return fn\n",
    "triton/language/__init__.py": "from .core import *\nfrom . import math\nfrom . import core\n",
    "triton/language/core.py": "def load(p): pass\nif True:\n    constexpr: type = int\n",
    "triton/language/math.py": "def sin(x): pass\n",
    "triton/language/extra/cuda/__init__.py": "globals()['gdc_wait'] = 1\n",
    "triton/tools/late.py": "def __getattr__(name): return 1\n",
    "triton/tools/borrowed.py": "from numpy import *\n",
    "triton/tools/circle.py": "from .round import *\n",
    "triton/tools/round.py": "from .circle import *\na = 1\n",
    "triton/_C/libtriton.so": "",
}


def missing(folder: Path, text: str) -> list[tuple[str, str]]:
    put(folder, {**TRITON, "kernels/one.py": text})
    return [(one.name, one.function) for one in missing_names.find(folder / "kernels", folder / "triton")]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("import triton.tools.ragged_tma", "triton.tools.ragged_tma"),
        ("import os, triton.gone as x", "triton.gone"),
        ("from triton.tools.ragged_tma import load", "triton.tools.ragged_tma"),
        ("from triton.language import target_info", "triton.language.target_info"),
        ("from triton.runtime.jit import jit, triton_key", "triton.runtime.jit.triton_key"),
        ("import triton\n@triton.constexpr_function\ndef f(): pass", "triton.constexpr_function"),
        ("import triton.language as tl\ntl.constexpr_function", "triton.language.constexpr_function"),
        ("from triton import language as tl\ndef f(x=tl.gone): pass", "triton.language.gone"),
        ("import triton\nclass A:\n    x = triton.language.math.gone", "triton.language.math.gone"),
    ],
)
def test_what_an_import_needs(tmp_path: Path, text: str, name: str) -> None:
    assert missing(tmp_path, text) == [(name, "")]


@pytest.mark.parametrize(
    "text",
    [
        "import triton\n@triton.jit\ndef f(): pass",
        "import triton.language as tl\ndef f(): tl.load(1)\ntl.math.sin; tl.constexpr",
        "from triton._C.libtriton import nvidia\nfrom triton._C.libtriton.ir import builder",
        "import triton.language.extra.cuda as c\nc.gdc_wait",
        "from triton.tools.late import a\nfrom triton.tools.borrowed import array",
        "from triton.tools.circle import a",
        "try:\n    import triton.gone\nexcept ImportError:\n    pass",
        "import triton\nif hasattr(triton, 'gone'):\n    triton.gone",
        "import triton\nx = hasattr(triton, 'gone') and triton.gone",
        "import contextlib\nwith contextlib.suppress(ImportError):\n    import triton.gone",
        "import triton\ndef f(triton): triton.gone",
        "import triton\ntriton = None\ntriton.gone",
        "import triton\ndef f():\n    if not triton: return\n    triton.gone",
        "from __future__ import annotations\nimport triton\ndef f(x: triton.gone) -> triton.gone: pass",
        "from triton.runtime import jit\njit.gone",  # the function: it hides the module of that name
        "import triton\ntriton.jit.gone",
        "from . import triton\ntriton.gone",
        "import tritonx.gone",
        "def f(:",
    ],
)
def test_what_is_there_or_uncertain(tmp_path: Path, text: str) -> None:
    assert missing(tmp_path, text) == []


def test_a_call_that_fails_names_its_function_and_an_import_comes_first(tmp_path: Path) -> None:
    text = "import triton.language as tl\ndef f():\n    tl.gone\n    tl.fled\nx = tl.fled\n"
    assert missing(tmp_path, text) == [("triton.language.fled", ""), ("triton.language.gone", "f")]


def test_a_file_may_be_nested_deeply(tmp_path: Path) -> None:
    assert missing(tmp_path, "import triton\nx" + ".a" * 20_000) == []  # if this Python parses it at all
    text = "import triton\ntriton.gone" + ".a" * 400 + "\n" + "-" * 400 + "triton.fled\n"
    assert missing(tmp_path, text) == [("triton.gone", ""), ("triton.fled", "")]


def test_the_place(tmp_path: Path) -> None:
    put(tmp_path, {**TRITON, "kernels/deep/two.py": "\n\nimport triton.gone\nimport triton.gone\n"})
    (found,) = missing_names.find(tmp_path / "kernels", tmp_path / "triton")
    assert found == MissingName(Path("deep/two.py"), 3, "triton.gone", "")
