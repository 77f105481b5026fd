from __future__ import annotations

import pytest

from tritonsmith.core.ui import console as formats


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0.0 s"),
        (0.44, "0.4 s"),
        (59.9, "59.9 s"),
        (60, "1 min 00 s"),
        (125.4, "2 min 05 s"),
        (3599.6, "1 h 00 min"),
        (3720, "1 h 02 min"),
        (90_000, "25 h 00 min"),
    ],
)
def test_duration(seconds: float, text: str) -> None:
    assert formats.duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB"), (5 << 40, "5.0 TiB")],
)
def test_sizes(count: int, text: str) -> None:
    assert formats.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(-5, "0 s"), (59, "59 s"), (60, "1 min"), (7200, "2 h"), (86400 * 40, "40 d")]
)
def test_ages(seconds: float, text: str) -> None:
    assert formats.age(seconds) == text


def test_entries() -> None:
    assert [formats.entries(count) for count in (0, 1, 2)] == ["0 entries", "1 entry", "2 entries"]
