from __future__ import annotations

from collections import Counter

import pytest

from tritonsmith.cli.tasks import namespace, start_page


def test_every_command_is_in_one_group() -> None:
    named = Counter(name for names in start_page.GROUPS.values() for name in names)
    assert dict(named) == dict.fromkeys(namespace.task_names, 1)


def test_a_newcomer_sees_few_commands() -> None:
    assert len(namespace.task_names) <= 45


def test_it_fits_a_small_terminal() -> None:
    page = list(start_page.lines())
    assert len(page) <= 40
    assert max(map(len, page)) <= 80


@pytest.mark.parametrize("name", sorted(namespace.every))
def test_each_task_says_in_a_line_what_it_does(name: str) -> None:
    line, *_ = (namespace.every[name].__doc__ or "").strip().splitlines()
    assert len(line) <= 72
    assert line.endswith((".", "..."))
    assert line.split()[0] not in ("A", "The", "This", "What", "Which")  # but a verb
