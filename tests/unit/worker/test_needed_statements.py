"""What the worker runs of a kernel's file."""

from __future__ import annotations

import ast

import pytest

from tritonsmith.worker.load import candidates, needed

TUTORIAL = """
import sys, torch, triton
import triton.language as tl
DEVICE = triton.runtime.driver.active.get_active_torch_device()
SIZE = 64
TABLE = {}
TABLE["a"] = SIZE
NAMES = []
for name in ("x", "y"):
    NAMES.append(name)
a = torch.rand(3, device=DEVICE)

@triton.jit
def helper(x):
    return x * SCALE

SCALE = tl.constexpr(2)

@triton.autotune(configs=[triton.Config(TABLE)], key=NAMES)
@triton.jit
def kernel(a, n, BLOCK: tl.constexpr = SIZE):
    c = helper(a)
    return c

def launch(x):
    kernel[(1,)](x)

c = launch(a)
print(c)
kernel[(1,)](a)
benchmark.run(print_data=True)
sys.path.insert(0, "there")
if __name__ == "__main__":
    launch(a)
raise SystemExit(3)
"""


def kept(text: str, name: str) -> list[str]:
    body = needed(ast.parse(text), name)
    assert body is not None
    return [ast.unparse(node).splitlines()[-1].strip() for node in body]


def test_a_tutorial_is_cut_to_what_its_kernel_needs() -> None:
    assert kept(TUTORIAL, "kernel") == [
        "import sys, torch, triton",
        "import triton.language as tl",
        "SIZE = 64",
        "TABLE = {}",
        "TABLE['a'] = SIZE",
        "NAMES = []",
        "NAMES.append(name)",
        "return x * SCALE",
        "SCALE = tl.constexpr(2)",
        "return c",
        "sys.path.insert(0, 'there')",
    ]


def test_names_of_a_function_are_its_own() -> None:
    text = "b = crash()\ndef f(a, *b, **c):\n    d = [e for e in a]\n    return d\nd = crash()\ne = crash()"
    assert kept(text, "f") == ["return d"]


def test_a_global_statement_and_defaults_reach_out() -> None:
    text = "a = 1\nb = 2\nc = 3\ndef f(x=b, y: c = 0):\n    global a\n    a = 5"
    assert kept(text, "f") == ["a = 1", "b = 2", "c = 3", "a = 5"]


def test_classes_and_conditions_come_whole() -> None:
    text = "import m\nBASE = m.Base\nif m.new:\n    X = 1\nelse:\n    X = 2\n"
    text += "class C(BASE):\n    y = X\ndef f():\n    C()"
    assert kept(text, "f") == ["import m", "BASE = m.Base", "X = 2", "y = X", "C()"]


def test_stars_and_futures_always_come() -> None:
    text = "from __future__ import annotations\nfrom m import *\nx = 1\ndef f(): pass"
    assert kept(text, "f") == ["from __future__ import annotations", "from m import *", "pass"]


def test_who_looks_into_globals_gets_everything() -> None:
    assert len(kept("x = 1\nprint(2)\ndef f():\n    return globals()['x']", "f")) == 3


@pytest.mark.parametrize("last", ["sys.exit(main())", "os._exit(3)", "os.abort()"])
def test_a_file_that_ends_the_program_is_not_ended_by_it(last: str) -> None:
    text = f"import sys, os\nsys.path.append('x')\ndef main(): pass\ndef kernel(): pass\n{last}\n"
    assert kept(text, "kernel") == ["import sys, os", "sys.path.append('x')", "pass"]


def test_a_function_inside_of_another_is_no_candidate() -> None:
    text = "if x:\n  @jit\n  def a(): pass\ndef make():\n  @jit\n  def b(): pass\n"
    assert candidates(ast.parse(text)) == ["a"]


def test_a_name_that_is_not_there() -> None:
    assert needed(ast.parse(TUTORIAL), "kernl") is None
    assert candidates(ast.parse(TUTORIAL)) == ["helper", "kernel"]
