"""What a dump says of its failure, and texts that name no folders."""

from __future__ import annotations

import pytest

from tritonsmith.compiler.dump.index import DumpedKernel
from tritonsmith.lab.failure import Failure
from tritonsmith.lab.isolate import failing_pass

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("error", "failure"),
    [
        ("the compiler died: SIGSEGV", Failure("signal", "SIGSEGV")),
        ("Fatal Python error: Segmentation fault\n\n  File a.py", Failure("signal", "SIGSEGV")),
        (
            "Traceback (most recent call last):\n    x('error: y')\nIndexError: map::at",
            Failure("exception", "IndexError: map::at"),
        ),
        ("a.py:1:2: error: 'tt.dot' op is wrong", Failure("error", "'tt.dot' op is wrong")),
    ],
)
def test_the_failure_of_a_dump(error: str, failure: Failure) -> None:
    assert failing_pass.recorded_failure(DumpedKernel("k", "k", "cuda:90", "SomePass", error)) == failure


def test_locations_keep_the_names_of_files() -> None:
    text = '%0 = a loc("/home/jane/secret/k.py":1:2)\n#loc = loc(callsite("/a b/c.py":1:1 at "f"))\n"/x/y"\n'
    made = failing_pass.without_folders(text)
    assert 'loc("k.py":1:2)' in made
    assert 'callsite("c.py":1:1 at "f")' in made
    assert "jane" not in made
    assert '"/x/y"' in made


@pytest.mark.parametrize(
    ("recorded", "seen", "same"),
    [
        ("unreachable: no layout in Prefetch.cpp", "unreachable: no layout in Prefetch.cpp", True),
        ("unreachable: no layout in Prefetch.cpp", "unreachable: no type in Prefetch.cpp", False),
        # Dumps of before 2026-11 lack the message.
        ("unreachable:  in Prefetch.cpp", "unreachable: no layout in Prefetch.cpp", True),
        ("unreachable:  in Prefetch.cpp", "unreachable: no layout in Utility.cpp", False),
    ],
)
def test_unreachable_code_is_the_same_by_message_and_file(recorded: str, seen: str, same: bool) -> None:
    assert failing_pass._same(Failure("assertion", recorded), Failure("assertion", seen)) is same
