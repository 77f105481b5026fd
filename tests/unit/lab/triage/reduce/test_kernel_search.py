"""The search on a symptom that needs no compiler: what it leaves shows it, is small, and always the same."""

from __future__ import annotations

import ast
import time
from itertools import chain

import pytest
from hypothesis import given, settings

from tests.unit.lab.reduce.searching import searched
from tests.unit.lab.triage.reduce.sources import KERNEL, modules
from tritonsmith.lab.reduce import python_source
from tritonsmith.lab.triage.reduce.kernel_search import KernelCandidate, KernelSearch, counts, size_of

pytestmark = [pytest.mark.unit, pytest.mark.filterwarnings("ignore::SyntaxWarning")]

ENTRIES = (("a", "*fp32:16"), ("b", "*fp32:16"), ("out", "*fp32:16"), ("N", "i32"), ("BLOCK", "1024"))
START = KernelCandidate(KERNEL, (*ENTRIES, ("EVEN", "True")), (("num_stages", "4"), ("num_warps", "8")))


def loads_in_a_loop(candidate: KernelCandidate) -> bool:
    """Whether a kernel that could be compiled loads in a loop."""
    kernel = python_source.kernel_of(ast.parse(candidate.text), "kernel")
    if kernel is None or [one.arg for one in kernel.args.args] != [name for name, _ in candidate.entries]:
        return False
    loops = [node for node in ast.walk(kernel) if isinstance(node, ast.For)]
    return any("tl.load(" in ast.unparse(part) for loop in loops for part in loop.body)


def reduced(start: KernelCandidate, jobs: int = 1) -> tuple[KernelCandidate, int]:
    """The smallest that still loads in a loop."""
    search = KernelSearch(start, "kernel", jobs=jobs)
    best = searched(search, loads_in_a_loop, jobs=jobs)
    return best, search.tried


def test_what_is_left_is_what_the_symptom_needs() -> None:
    best, tried = reduced(START)
    assert best.text == (
        "import triton\nimport triton.language as tl\n\n"
        "@triton.jit\ndef kernel():\n    for start in 0:\n        x = tl.load(0)\n"
    )
    assert best.entries == ()
    assert best.options == ()
    assert tried > 10
    assert counts(best.text, "kernel").arguments == 0


@pytest.mark.slow
def test_the_same_whatever_is_tested_at_once() -> None:
    def slow(candidate: KernelCandidate) -> bool:
        time.sleep(0.001 * (len(candidate.text) % 3))
        return loads_in_a_loop(candidate)

    # Not the number of tests: how many have begun when the first success comes depends on their durations.
    assert searched(KernelSearch(START, "kernel", jobs=3), slow, jobs=3) == reduced(START)[0]
    assert reduced(START, jobs=2)[0] == reduced(START)[0]


@pytest.mark.slow
@settings(deadline=None, max_examples=5)
@given(modules())
def test_the_result_is_minimal(text: str) -> None:
    def shows(candidate: KernelCandidate) -> bool:
        return "while " in candidate.text or "tl.where(" in candidate.text

    start = KernelCandidate(text)
    if not shows(start):
        return
    best = searched(KernelSearch(start, ""), shows)
    compile(best.text, "best", "exec")
    assert shows(best)
    smaller = chain(
        (python_source.without(best.text, [one]) for one in python_source.removable(best.text, "")),
        (one for _, one in python_source.unwrapped(best.text, 0)),
        (one for _, one in python_source.simpler(best.text, 0)),
        (one for _, one in python_source.constants(best.text, 0)),
        python_source.copies(best.text),
        python_source.inlined(best.text),
    )
    for one in filter(None, smaller):
        candidate = KernelCandidate(one)
        assert not shows(candidate) or size_of(candidate) >= size_of(best)


def test_sizes_are_halved_and_stay_where_a_symptom_needs_them() -> None:
    text = "import tl\n\n\ndef kernel(x, A: tl.constexpr, B: tl.constexpr):\n    return tl.f(x, A, B)\n"
    start = KernelCandidate(text, (("x", "i32"), ("A", "128"), ("B", "64")))

    def shows(candidate: KernelCandidate) -> bool:
        entries = dict(candidate.entries)
        return int(entries.get("A", 0)) >= 32 and "A" in candidate.text and "B: " in candidate.text

    best = searched(KernelSearch(start, "kernel"), shows)
    assert best.entries == (("A", "32"), ("B", "1"))
    assert best.text == "import tl\n\ndef kernel(A: tl.constexpr, B: tl.constexpr):\n    pass\n"
