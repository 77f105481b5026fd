"""Damage, by a seed: what bit rot, broken tools and people who wish ill do to a file."""

from __future__ import annotations

import random

_NASTY = (
    *(
        b"\0",
        b"\xff\xfe",
        b"\xe9",
        b"\xed\xa0\x80",
        b"\xef\xbb\xbf",
        b"\xc2\xa0",
        b"\\ud800",
        b"\\u0000",
        b"%00%2e%2e",
    ),
    *(
        b"[" * 3000,
        b"{" * 3000,
        b'{"a":' * 500,
        b"1" * 5001,
        b"9" * 400,
        b"9" * 20,
        b"a" * 5000,
        b"/" * 300,
        b"../" * 40,
    ),
    *(
        b"~nosuchuser/x",
        b"/proc/self/mem",
        b"/dev/zero",
        b"$(x)",
        b"\x1b[2J\x1b]0;x\x07",
        b"\r",
        b"\r\n",
        b"\n\n",
        b"\t",
    ),
    *(
        b'"',
        b"'",
        b",",
        b"=",
        b";",
        b"\\",
        b"#",
        b" ",
        b"-1",
        b"1e999",
        b"NaN",
        b"null",
        b"true",
        b"0x",
        b"1-2-3",
    ),
    *(b'""', b"[]", b"{}"),
)


def mutated(content: bytes, chance: random.Random) -> bytes:
    """A content with one to four changes."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        upto = min(len(data), at + chance.choice((1, 1, 2, 8, 60)))
        kind = chance.randrange(7)
        if kind == 0 and data:  # a bit
            data[at % len(data)] ^= 1 << chance.randrange(8)
        elif kind == 1:
            del data[at:upto]
        elif kind == 2:  # truncated
            del data[at:]
        elif kind == 3:
            data[at:at] = data[chance.randrange(len(data) + 1) :][:200]
        elif kind == 4:
            data[at:upto] = chance.choice(_NASTY)
        elif kind == 5:  # a value in a line
            begin = data.find(b"=", at) + 1 or data.find(b":", at) + 1 or data.find(b",", at) + 1 or at
            end = data.find(b"\n", begin)
            data[begin : end if end >= 0 else len(data)] = chance.choice(_NASTY)
        else:
            data[at:at] = chance.randbytes(chance.randrange(1, 20))
    return bytes(data)
