"""docs/doctor.md has a section for each check, and the links of findings lead there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tritonsmith.doctor import registry
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.finding import Finding

REPOSITORY = Path(__file__).parents[3]
PAGE = (REPOSITORY / "docs" / "doctor.md").read_text(encoding="utf-8")
SECTIONS = re.findall(r"^### ([a-z]+\.[a-z0-9-]+)$", PAGE, re.MULTILINE)


def test_a_section_for_each_check_in_their_order() -> None:
    assert [check.id for check in registry.ALL] == SECTIONS


@pytest.mark.parametrize("check", registry.ALL, ids=lambda check: check.id)
def test_a_section_says_why_and_how_to_mend(check: Check) -> None:
    _, _, rest = PAGE.partition(f"### {check.id}\n")
    section = re.split(r"^##", rest, maxsplit=1, flags=re.MULTILINE)[0]
    assert len(section.split()) >= 30, section


@pytest.mark.parametrize("check", registry.ALL, ids=lambda check: check.id)
def test_links_are_those_that_a_browser_makes_of_the_heads(check: Check) -> None:
    page, _, anchor = Finding("ok", "", check=check.id).docs.partition("#")
    assert (REPOSITORY / page).is_file()
    assert anchor == re.sub(r"[^\w-]", "", check.id)
