"""A check: a name, a title, and a function from the subject to findings; a crash is a finding too."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, skipped

Look = Callable[[DoctorContext], Iterable[Finding]]


@dataclass(frozen=True)
class Check:
    """A named check of the doctor.

    Attributes:
        id: `group.name`; also the head of its section in docs/doctor.md.
        title: what the check covers, in a few words.
        look: yields findings, without the check's id; at least one, or it raises `NotApplicableError`.
        deep: the check runs programs, and only with `--deep`.
    """

    id: str
    title: str
    look: Look
    deep: bool = False

    @property
    def group(self) -> str:
        """The group of the check: `tools`, `machine` ..."""
        return self.id.partition(".")[0]

    def __call__(self, subject: DoctorContext) -> tuple[Finding, ...]:
        """Run the check; an exception becomes a finding."""
        try:
            findings = tuple(self.look(subject))
        except NotApplicableError as why:
            findings = (skipped(str(why)),)
        except Exception as error:  # noqa: BLE001 - a crash of one check is a finding, not a traceback
            text = f"{type(error).__name__}: {error}"
            findings = (Finding("crashed", text, remedy="report this: it is a bug in the doctor"),)
        return tuple(replace(finding, check=self.id) for finding in findings)


def check(identifier: str, title: str, *, deep: bool = False) -> Callable[[Look], Check]:
    """Make a function a check."""

    def decorate(look: Look) -> Check:
        return Check(identifier, title, look, deep)

    return decorate
