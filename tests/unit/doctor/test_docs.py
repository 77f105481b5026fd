"""docs/doctor.md has a section for each check, and findings lead there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tritonsmith.doctor import run
from tritonsmith.doctor.check import Check, Finding

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### ([a-z]+\.[a-z0-9-]+)$", PAGE, re.MULTILINE)


def test_a_section_for_each_check_in_their_order() -> None:
    assert [check.id for check in run.ALL] == SECTIONS


@pytest.mark.parametrize("check", run.ALL, ids=lambda check: check.id)
def test_a_section_says_why_and_how_to_mend(check: Check) -> None:
    _, _, rest = PAGE.partition(f"### {check.id}\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    assert len(section.split()) >= 30, section


@pytest.mark.parametrize("check", run.ALL, ids=lambda check: check.id)
def test_a_finding_leads_to_its_section(check: Check) -> None:
    name = Finding("ok", "", check=check.id).docs.removeprefix("invoke doctor --explain ")
    head, _, rest = run.explanation(name).partition("\n")
    assert head == f"### {check.id}"
    assert "\n#" not in rest
    assert rest.strip()
    assert rest.strip() in PAGE
