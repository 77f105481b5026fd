"""A kernel whose result is wrong, under triage."""

from __future__ import annotations

import pytest

from tritonsmith.compiler.interpreter import Interpreter
from tritonsmith.core.errors import InterruptedRunError
from tritonsmith.lab.triage.kernel import WrongKernelSubject
from tritonsmith.lab.triage.variant import TriageChange, every

pytestmark = pytest.mark.unit


class InterruptedSubject(WrongKernelSubject):
    """Somebody presses ^C while another release is got."""

    def place(self, variant: TriageChange) -> Interpreter:
        raise InterruptedRunError(f"interrupted in {variant.name}")


def test_an_interrupted_run_is_no_answer() -> None:
    subject = object.__new__(InterruptedSubject)
    for one in every():
        with pytest.raises(InterruptedRunError, match=one.name):
            subject.test(one.change)
