"""Logs in which something stands before each line."""

from __future__ import annotations

import pytest

from tests.unit.compiler.dump.streams import banner, module
from tritonsmith.compiler.dump import import_log

LOG = f"start\n{banner('A', 'a')}{module('%0 = x')}{banner('B', 'b')}{module('%1 = y')}end\n".encode()


def cleaned(log: bytes, chunk: int = 1 << 20) -> tuple[bytes, list[str]]:
    said: list[str] = []
    chunks = (log[begin : begin + chunk] for begin in range(0, len(log), chunk))
    return b"".join(import_log.without_prefixes(chunks, said.append)), said


def before_each_line(log: bytes, *prefix: bytes, after: bytes = b"") -> bytes:
    lines = log.splitlines()
    return b"".join(prefix[at % len(prefix)] + line + after + b"\n" for at, line in enumerate(lines))


@pytest.mark.parametrize("chunk", [1, 7, 100, 1 << 20])
@pytest.mark.parametrize(
    ("prefix", "after"),
    [
        ([b"2026-11-21T10:00:00.1234567Z ", b"2026-11-21T10:00:07.89Z "], b""),  # GitHub Actions
        ([b"[rank0]: ", b"[rank11]: "], b""),
        ([b"worker-1  | "], b""),
        ([b"    "], b""),  # an issue's code block
        ([b"\x1b[36m"], b"\x1b[0m"),
        ([b"\x1b[36m[default0]:\x1b[0m"], b""),
    ],
)
def test_it_is_taken_away(prefix: list[bytes], after: bytes, chunk: int) -> None:
    made, said = cleaned(before_each_line(LOG, *prefix, after=after), chunk)
    assert made.partition(b"// -----")[2] == LOG.partition(b"// -----")[2]
    assert len(said) == 1


def test_blanks_at_the_ends_of_lines_may_be_gone() -> None:
    log = before_each_line(LOG, b"[0]: ").replace(b": \n", b":\n")
    assert cleaned(log)[0].partition(b"// -----")[2] == LOG.partition(b"// -----")[2]


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
@pytest.mark.parametrize(
    "log",
    [
        LOG,
        b"",
        b"no banner",
        b"2026 x\n" * 20,
        b"50 %" + LOG.removeprefix(b"start\n"),  # output without a line end before a banner
        b"  " + LOG.removeprefix(b"start\n"),
        b"50 %" + LOG[6:100],  # cut before anybody can tell
        b"Dump \n" * 9 + LOG,
    ],
)
def test_other_logs_stay_as_they_are(log: bytes, chunk: int) -> None:
    assert cleaned(log, chunk) == (log, [])


def test_a_line_without_an_end_is_not_held() -> None:
    log = b"x" * (1 << 20)
    chunks = [log] * 20
    assert b"".join(import_log.without_prefixes(iter(chunks), pytest.fail)) == log * 20
