from __future__ import annotations

from tritonsmith.cli import pages
from tritonsmith.cli.tasks import namespace


def test_a_newcomer_sees_few_commands() -> None:
    assert len(namespace.task_names) <= 47


def test_it_fits_a_small_terminal() -> None:
    page = list(pages.start_page())
    assert len(page) <= 40
    assert max(map(len, page)) <= 80
