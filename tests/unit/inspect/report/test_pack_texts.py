"""What goes into a chunk comes out of it, and what is equal is there once."""

from __future__ import annotations

import base64
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as some

from tritonsmith.inspect.report import write
from tritonsmith.inspect.report.write import Packer


def unpacked(chunk: str) -> list[bytes]:
    """As `src/bodies.js` does it."""
    content = zlib.decompress(base64.b64decode(chunk))
    (size,) = struct.unpack_from("<I", content)
    lines = content[4 : 4 + size].split(b"\n")
    place, last, found = 4 + size, -1, []
    while place < len(content):
        (count,) = struct.unpack_from("<i", content, place)
        steps = struct.unpack_from(f"<{count}i", content, place + 4)
        place += 4 + 4 * count
        text = []
        for step in steps:
            last += 1 + step
            text.append(lines[last])
        found.append(b"\n".join(text))
    return found


@given(some.lists(some.lists(some.sampled_from([b"", b"a", b"%1 = b", b"\xff\xfe", b"\r"])).map(b"\n".join)))
def test_texts_come_out_as_they_went_in(texts: list[bytes]) -> None:
    packer, chunks = Packer(), []
    numbers = []
    for place, text in enumerate(texts):
        numbers.append(packer.add(text))
        if place % 3 == 2 and (chunk := packer.rest()):
            chunks.append(chunk)
    if chunk := packer.rest():
        chunks.append(chunk)
    found = [text for chunk in chunks for text in unpacked(chunk)]
    assert [found[number] for number in numbers] == texts
    assert len(packer.starts) == len(chunks)
    assert len(found) == packer.texts == len(set(texts))


def test_a_text_that_is_nearly_the_last_one_costs_next_to_nothing() -> None:
    lines = [f"%{number} = arith.addi %a, %{number * 7919 % 10007} : i32" for number in range(5000)]
    one, many = Packer(), Packer()
    one.add("\n".join(lines).encode())
    for number in range(40):
        lines[number * 100] = f"// pass {number}"
        many.add("\n".join(lines).encode())
    single, all_ = one.rest(), many.rest()
    assert single is not None
    assert all_ is not None
    assert len(all_) < 1.2 * len(single)


def test_a_chunk_ends_when_it_is_full_of_new_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert write._FULL == 4 << 20
    monkeypatch.setattr(write, "_FULL", 1 << 16)  # 4 MiB take a second
    packer = Packer()
    packer.add(b"short")
    assert packer.chunk() is None
    packer.add(b"".join(b"%d\n" % number for number in range(15_000)))
    assert packer.chunk() is not None
    assert packer.add(b"next") == 2
    assert packer.starts == [0, 2]


def test_a_kernel_gets_a_chunk_of_its_own_unless_it_is_small() -> None:
    packer = Packer()
    packer.add(b"small")
    assert packer.chunk(between=True) is None
    packer.add(b"line\n" * 300_000)
    assert packer.chunk() is None
    assert packer.chunk(between=True) is not None
