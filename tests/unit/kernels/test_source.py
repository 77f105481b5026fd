from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.errors import FactError, UsageError
from tritonsmith.kernels import source
from tritonsmith.kernels.source import Parameter

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
        Parameter("x"),
        Parameter("n"),
        Parameter("EVEN", constexpr=True),
        Parameter("BLOCK", constexpr=True, has_default=True, default=64),
    )
    assert (kernel.heuristics, kernel.autotuned) == (("EVEN",), True)


@pytest.mark.parametrize("name", ["computed", "theirs", "made", "host"])
def test_what_only_running_it_tells(name: str) -> None:
    assert source.find(TEXT, name, FILE) is None


def test_a_default_that_is_no_literal_is_not_guessed() -> None:
    assert source.find("@triton.jit\ndef k(x, B=SIZE): pass", "k", FILE) is None


def test_no_such_kernel_names_those_there() -> None:
    with pytest.raises(UsageError, match="there is no kernel 'main_kernl'") as caught:
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
    assert "name one: /k.py:computed" in caught.value.hints
    with pytest.raises(UsageError, match="has no kernel"):
        source.choose("x = 1", "", FILE)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "kernel.py").write_text("")
    (tmp_path / "latin.py").write_bytes(b"# \xe9")
    with pytest.raises(FactError, match="there is no such file") as caught:
        source.read(tmp_path / "kernels.py")
    assert "did you mean 'kernel.py'?" in caught.value.hints
    with pytest.raises(FactError, match="no text in UTF-8"):
        source.read(tmp_path / "latin.py")
    with pytest.raises(FactError, match="a folder"):
        source.read(tmp_path)
