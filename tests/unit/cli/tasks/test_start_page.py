from __future__ import annotations

from collections import Counter

import pytest

from tritonsmith.cli.tasks import namespace, start_page


def test_every_task_is_in_one_group() -> None:
    named = Counter(name for names in start_page.GROUPS.values() for name in names)
    assert dict(named) == dict.fromkeys(namespace.task_names, 1)


def test_aliases_are_named() -> None:
    (line,) = (line for line in start_page.lines() if line.startswith("Aliases"))
    named = {alias for aliases in namespace.task_names.values() for alias in aliases}
    assert set(line.split()[1:]) == named


def test_it_fits_a_small_terminal() -> None:
    page = list(start_page.lines())
    assert len(page) <= 40
    assert max(map(len, page)) <= 80


@pytest.mark.parametrize("name", sorted(namespace.task_names))
def test_each_task_says_in_a_line_what_it_does(name: str) -> None:
    line, *_ = (namespace[name].__doc__ or "").strip().splitlines()
    assert len(line) <= 72
    assert line.endswith((".", "..."))
    assert line.split()[0] not in ("A", "The", "This", "What", "Which")  # but a verb
