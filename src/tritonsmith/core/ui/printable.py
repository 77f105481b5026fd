"""Makes untrusted text safe for a terminal."""

from __future__ import annotations

import re

# Control characters but for line ends and tabs, and what turns the direction of writing around. A surrogate
# is a byte of a file's name that is no UTF-8.
_HARMFUL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_BYTES = range(0xDC80, 0xDD00)  # surrogates that stand for bytes: PEP 383
_LATIN = 0x100


def printable(text: str) -> str:
    r"""The text with `\x1b` for an escape character, and the like: names in an archive may contain
    sequences that clear the screen, retitle the window or type an answer.
    """  # noqa: D205 - one sentence
    return _HARMFUL.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code in _BYTES:
        code -= 0xDC00
    return f"\\x{code:02x}" if code < _LATIN else f"\\u{code:04x}"
