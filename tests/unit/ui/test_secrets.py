from __future__ import annotations

import pytest

from tritonsmith.ui.secrets import without_passwords


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://u:secret@proxy:8080 x", "http://***@proxy:8080 x"),
        ("http://u:se@cret@proxy/x", "http://***@proxy/x"),
        ("git@github.com:a/b, https://x/y@1.0", "git@github.com:a/b, https://x/y@1.0"),
    ],
)
def test_passwords(text: str, shown: str) -> None:
    assert without_passwords(text) == shown
