from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler import source
from tritonsmith.compiler.source import KernelParameter
from tritonsmith.core.errors import FactError, UsageError

FILE = Path("/k.py")
TEXT = """
import triton
import triton.language as tl
from other import theirs
made = make_kernel()

@triton.jit
def helper(x):
    return x

@triton.autotune(configs=configs(), key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % 2 == 0})
@triton.jit(do_not_specialize=["n"])
def main_kernel(x, n, *, EVEN: tl.constexpr, BLOCK: "tl.constexpr" = 64):
    helper(x)

@triton.heuristics(values=TABLE)
@triton.jit
def computed(x):
    pass

def host(x):
    main_kernel[(1,)](x)
"""


def test_kernels_are_told_by_their_decorators() -> None:
    assert source.kernels(TEXT) == ("helper", "main_kernel", "computed")


def test_what_the_head_tells() -> None:
    kernel = source.find(TEXT, "main_kernel", FILE)
    assert kernel is not None
    assert kernel.parameters == (
        KernelParameter("x"),
        KernelParameter("n"),
        KernelParameter("EVEN", constexpr=True),
        KernelParameter("BLOCK", constexpr=True, has_default=True, default=64),
    )
    assert (kernel.heuristics, kernel.autotuned) == (("EVEN",), True)


@pytest.mark.parametrize("name", ["computed", "theirs", "made", "host"])
def test_what_only_running_it_tells(name: str) -> None:
    assert source.find(TEXT, name, FILE) is None


def test_a_default_that_is_no_literal_is_not_guessed() -> None:
    assert source.find("@triton.jit\ndef k(x, B=SIZE): pass", "k", FILE) is None


@pytest.mark.parametrize(
    "other", ["@triton.jit\n    def k(x, y): pass", "from other import k", "k = triton.jit(theirs)"]
)
def test_of_two_kernels_of_one_name_only_running_it_tells(other: str) -> None:
    text = f"if HIP:\n    {other}\nelse:\n    @triton.jit\n    def k(x): pass\n"
    assert source.find(text, "k", FILE) is None
    assert source.choose(text, "", FILE) == "k"


def test_no_such_kernel_names_those_there() -> None:
    with pytest.raises(UsageError, match="this file has no kernel 'main_kernl'") as caught:
        source.find(TEXT, "main_kernl", FILE)
    assert "did you mean 'main_kernel'?" in caught.value.hints


@pytest.mark.parametrize("text", ["from x import *", "globals()['k'] = 1", "def broken(:"])
def test_a_file_that_may_bind_anything_is_asked(text: str) -> None:
    assert source.find(text, "k", FILE) is None


def test_the_only_kernel_need_not_be_named() -> None:
    text = TEXT.replace("@triton.heuristics(values=TABLE)\n@triton.jit\n", "")
    assert source.choose(text, "", FILE) == "main_kernel"  # helper is called by it
    assert source.choose(text, "helper", FILE) == "helper"
    with pytest.raises(UsageError, match="has 3 kernels") as caught:
        source.choose(TEXT, "", FILE)
    assert "choose one: /k.py:computed" in caught.value.hints
    with pytest.raises(UsageError, match="has no kernel"):
        source.choose("x = 1", "", FILE)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("")
    (tmp_path / "latin.py").write_bytes(b"# \xe9")
    with pytest.raises(FactError, match="no such file") as caught:
        source.read(tmp_path / "kernels.py")
    assert "did you mean 'kernel.py'?" in caught.value.hints
    with pytest.raises(FactError, match="cannot decode this file as UTF-8"):
        source.read(tmp_path / "latin.py")
    with pytest.raises(FactError, match="a folder"):
        source.read(tmp_path)


@pytest.mark.parametrize(
    "content",
    [
        b"\xef\xbb\xbfimport triton\n@triton.jit\ndef k(x): pass\n",
        b"# -*- coding: latin-1 -*-\n# \xe9\nimport triton\n@triton.jit\ndef k(x): pass\n",
        b"import triton\r\n@triton.jit\r\ndef k(x):\r\n    pass\r\n",
    ],
)
def test_a_file_is_read_as_python_reads_it(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(content)
    assert source.choose(source.read(file), "", file) == "k"


@pytest.mark.parametrize("content", [b"\xff\xfe\x00abc", b"# coding: nonsense\n", b"x = 1\n" * 9 + b"\xff"])
def test_a_file_that_is_no_text(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "k.py"
    file.write_bytes(content)
    with pytest.raises(FactError, match="cannot decode this file as UTF-8"):
        source.read(file)


def test_a_file_that_is_not_there_names_its_neighbours_if_it_has_any(tmp_path: Path) -> None:
    with pytest.raises(FactError) as caught:
        source.read(tmp_path / "add.py")
    assert caught.value.hints == ()
    (tmp_path / "adds.py").touch()
    with pytest.raises(FactError) as caught:
        source.read(tmp_path / "add.py")
    assert "did you mean 'adds.py'?" in caught.value.hints


@pytest.mark.parametrize(
    ("text", "why"), [("x = 1\ndef (:\n", "line 2: invalid syntax: def (:"), ("x = '\0'", "null byte")]
)
def test_what_is_no_python_is_not_a_file_without_kernels(text: str, why: str) -> None:
    with pytest.raises(FactError, match="cannot parse this file as Python") as caught:
        source.choose(text, "", FILE)
    assert why in str(caught.value.why)
    assert source.choose(text, "k", FILE) == "k"  # a newer Python may read it


INNER = """
import triton
def make():
    @triton.jit
    def k(x): pass
    return k
def sized(n):
    @triton.jit
    def s(x): pass
    return s
kernel = make()
"""


def test_a_kernel_inside_of_a_function_says_how_it_is_named() -> None:
    k, s = source.inner_kernels(INNER)
    assert (k.maker, k.name, k.bound, k.free) == ("make", "k", ("kernel",), True)
    assert (s.maker, s.name, s.bound, s.free) == ("sized", "s", (), False)
    with pytest.raises(UsageError, match=r"no kernel 'k' at module level, only k inside make\(\)") as caught:
        source.find(INNER, "k", FILE)
    assert [hint.rpartition(": ")[2] for hint in caught.value.hints] == ["/k.py:kernel", "/k.py:make.k"]
    with pytest.raises(UsageError, match=r"s inside sized\(\)") as caught:
        source.find(INNER, "s", FILE)
    assert "needs arguments" in caught.value.hints[0]
    with pytest.raises(UsageError, match=r"k inside make\(\), s inside sized\(\)"):
        source.choose(INNER, "", FILE)
    assert source.find(INNER, "make.k", FILE) is None, "only running it tells"
    assert source.find(INNER, "kernel", FILE) is None


def test_what_the_only_inner_kernel_is_bound_to_need_not_be_named() -> None:
    assert source.choose(INNER.partition("def sized")[0] + "kernel = make()\n", "", FILE) == "kernel"


def test_a_name_that_functions_bind_is_no_name_of_the_module() -> None:
    with pytest.raises(UsageError, match="no kernel 'x'"):
        source.find("def f():\n    x = 3\n", "x", FILE)
    assert source.find("def f():\n    global x\n    x = 3\n", "x", FILE) is None
    assert source.find("def __getattr__(name):\n    return 3\n", "x", FILE) is None


def test_a_file_that_is_nested_too_deeply_is_left_to_the_env_s_interpreter() -> None:
    assert source.kernels("(" * 5000 + ")" * 5000) == ()
    assert source.kernels("x = " + "-" * 100_000 + "1") == ()
