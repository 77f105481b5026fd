from __future__ import annotations

from collections import Counter

import pytest

from tritonsmith.cli import commands
from tritonsmith.cli.tasks import namespace


def test_no_command_is_listed_twice() -> None:
    named = Counter([*commands.MODES, *(name for group in commands.GROUPS.values() for name in group)])
    assert dict(named) == dict.fromkeys(namespace.every, 1)


@pytest.mark.parametrize("name", sorted(namespace.every))
def test_the_purpose_is_the_first_line_of_the_docstring(name: str) -> None:
    line, *_ = (namespace.every[name].__doc__ or "").strip().splitlines()
    assert commands.EVERY[name].purpose == line
    assert len(line) <= 72
    assert line.endswith((".", "..."))
    assert line.split()[0] not in ("A", "The", "This", "What", "Which")  # but a verb
