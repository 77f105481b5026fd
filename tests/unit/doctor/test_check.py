from __future__ import annotations

from collections.abc import Iterator

from tritonsmith.doctor.check import Check, check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, ok, skipped


@check("tools.two", "a check that finds two things", deep=True)
def two(subject: DoctorContext) -> Iterator[Finding]:
    yield ok(f"environment {subject.settings.name}")
    yield skipped("the other")


@check("tools.broken", "a check with a bug")
def broken(subject: DoctorContext) -> Iterator[Finding]:
    yield ok("so far")
    yield ok({"tools": subject.settings.name}["no such key"])


def test_a_function_becomes_a_check() -> None:
    assert isinstance(two, Check)
    assert (two.id, two.group, two.title, two.deep) == (
        "tools.two",
        "tools",
        "a check that finds two things",
        True,
    )
    assert not broken.deep


def test_each_finding_gets_the_name_of_its_check(subject: DoctorContext) -> None:
    assert [(found.check, found.status, found.seen) for found in two(subject)] == [
        ("tools.two", "ok", "environment dev"),
        ("tools.two", "not applicable", "the other"),
    ]


def test_a_check_that_does_not_apply_says_why(subject: DoctorContext) -> None:
    @check("tools.absent", "a check of what is not there")
    def absent(_: DoctorContext) -> Iterator[Finding]:
        raise NotApplicableError("nothing to look at")

    assert absent(subject) == (Finding("not applicable", "nothing to look at", check="tools.absent"),)


def test_a_check_that_crashes_is_a_finding(subject: DoctorContext) -> None:
    (found,) = broken(subject)
    assert (found.check, found.status, found.seen) == (
        "tools.broken",
        "crashed",
        "KeyError: 'no such key'",
    )
    assert "a bug in the doctor" in found.remedy
    assert found.wrong
