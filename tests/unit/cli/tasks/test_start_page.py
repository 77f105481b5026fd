from __future__ import annotations

from tritonsmith.cli.tasks import namespace, start_page


def test_a_newcomer_sees_few_commands() -> None:
    assert len(namespace.task_names) <= 47


def test_it_fits_a_small_terminal() -> None:
    page = list(start_page.lines())
    assert len(page) <= 40
    assert max(map(len, page)) <= 80
