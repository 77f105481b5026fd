from __future__ import annotations

import pytest

from tritonsmith.ui import format as formats


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
