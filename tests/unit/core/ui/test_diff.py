from __future__ import annotations

import pytest

from tritonsmith.core.ui import html_page


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("-O0 -g -c", "-O0 -gsplit-dwarf -c", "-g -> -gsplit-dwarf"),
        ("-O0 -c", "-O0 -DNDEBUG -c", "+ -DNDEBUG"),
        ("-Wall -O0", "-O0", "without -Wall"),
        ("-Wall -O0 -g", "-O2 -g -fPIC", "-Wall -O0 -> -O2; + -fPIC"),
        ("a b", "a b", "nothing"),
    ],
)
def test_words(before: str, after: str, words: str) -> None:
    assert html_page.in_words(before.split(), after.split()) == words
