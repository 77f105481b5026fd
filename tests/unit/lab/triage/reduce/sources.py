"""Python that looks like a kernel's file, made at random, and one that is a kernel's file."""

from __future__ import annotations

from hypothesis import strategies as st

NAMES = ("a", "b", "c", "N")

KERNEL = """\
import torch
import triton
import triton.language as tl
from os import path


def host():
    return torch.empty(path.sep)


@triton.jit
def scaled(x, factor, UNUSED: tl.constexpr):
    doubled = x * 2
    return doubled * factor


@triton.heuristics({"EVEN": lambda args: True})
@triton.jit
def kernel(a, b, out, N, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    # a comment
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in range(4, N, BLOCK):
        if EVEN:
            x = tl.load(a + at + start)
        else:
            x = tl.load(a + at + start, mask=at < N, other=0.0)
        y = scaled(x, 3.5, 7)
        total += y
    again = total
    tl.store(out + at, again, mask=at < N)
"""


def expressions() -> st.SearchStrategy[str]:
    """An expression over the names."""
    leaves = st.sampled_from((*NAMES, "1", "64", "0.5", "tl.float32", "None", "'x'"))

    def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.one_of(
            st.builds("({} + {})".format, inner, inner),
            st.builds("(-{})".format, inner),
            st.builds("({} < {})".format, inner, inner),
            st.builds("({} and {})".format, inner, inner),
            st.builds("({} if {} else {})".format, inner, inner, inner),
            st.builds("tl.load({}, mask={})".format, inner, inner),
            st.builds("tl.where({}, {}, {})".format, inner, inner, inner),
            st.builds("{}[:, None]".format, st.sampled_from(NAMES)),
            st.builds("helper({}, p={})".format, inner, inner),
            st.builds("({}, {})".format, inner, inner),
            st.builds("f'{{{}}}'".format, st.sampled_from(NAMES)),
        )

    return st.recursive(leaves, larger, max_leaves=6)


def statements() -> st.SearchStrategy[list[str]]:
    """Lines of a block."""
    one = st.one_of(
        st.builds("{} = {}".format, st.sampled_from(NAMES), expressions()),
        st.builds("{} += {}".format, st.sampled_from(NAMES), expressions()),
        st.builds("{}, {} = {}".format, st.sampled_from(NAMES), st.sampled_from(NAMES), expressions()),
        st.builds("a = helper({}, {})".format, expressions(), expressions()),
        st.builds("tl.store({}, {})".format, expressions(), expressions()),
        st.just("pass"),
    ).map(lambda line: [line])

    def larger(inner: st.SearchStrategy[list[str]]) -> st.SearchStrategy[list[str]]:
        block = st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: [f"    {line}" for part in parts for line in part]
        )
        loops = st.sampled_from(("break", "continue", "pass"))
        return st.one_of(
            st.builds(lambda e, one, two: [f"if {e}:", *one, "else:", *two], expressions(), block, block),
            st.builds(lambda e, one: [f"if {e}:", *one], expressions(), block),
            st.builds(lambda one, end: ["for i in range(1, N):", *one, f"    {end}"], block, loops),
            st.builds(lambda e, one, end: [f"while {e}:", *one, f"    {end}"], expressions(), block, loops),
            st.builds(lambda one: ["with tl.scope('x'):", *one], block),
            st.builds(lambda one, two: ["try:", *one, "except ValueError:", *two], block, block),
        )

    return st.recursive(one, larger, max_leaves=5)


def modules() -> st.SearchStrategy[str]:
    """A module with a helper and a kernel."""
    block = st.lists(statements(), min_size=1, max_size=4).map(
        lambda parts: "\n".join(f"    {line}" for part in parts for line in part)
    )
    head = (
        "import triton\nimport triton.language as tl\nSIZE = 64\n\n@triton.jit\ndef helper(x, p, q=SIZE):\n"
    )
    middle = "    return x\n\n@triton.jit(debug=True)\ndef kernel(a, b, N, c: tl.constexpr = 3):"
    return st.builds(
        f"{head}{{}}\n{middle}\n{{}}\n".format,
        block,
        block,
    )
