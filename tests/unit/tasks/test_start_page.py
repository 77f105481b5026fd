from __future__ import annotations

from collections import Counter

from tritonsmith.tasks import namespace, start_page


def test_every_task_is_in_one_group() -> None:
    named = Counter(name for names in start_page.GROUPS.values() for name in names)
    assert dict(named) == dict.fromkeys(namespace.task_names, 1)


def test_it_fits_a_small_terminal() -> None:
    page = list(start_page.lines("tritonsmith"))
    assert len(page) <= 40
    assert max(map(len, page)) <= 80
