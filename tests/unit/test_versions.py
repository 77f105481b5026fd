from __future__ import annotations

import pytest

from tritonsmith.core.command_line import version_key


@pytest.mark.parametrize(
    ("text", "key"),
    [("3.4.30", (3, 4, 30)), ("3.10", (3, 10)), ("v2.1.0-rc1", (2, 1, 0, 1)), ("19", (19,)), ("main", ())],
)
def test_version_key(text: str, key: tuple[int, ...]) -> None:
    assert version_key(text) == key


def test_versions_sort_as_numbers() -> None:
    assert sorted(["3.10", "3.9", "3.9.1"], key=version_key) == ["3.9", "3.9.1", "3.10"]
