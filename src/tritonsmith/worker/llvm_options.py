"""Set options of the LLVM inside libtriton, as `opt` and `llc` take them.

Its parser is in each libtriton.so. Up to 3.6 the library does not export it: the symbol table, which releases
keep, has its address. (The function of LLVM's C API ignores unknown options silently.)
"""

from __future__ import annotations

import ctypes
import mmap
import os
import re
import struct
import tempfile
from collections.abc import Callable
from typing import Any

from .border import RequestRefusedError
from .libtriton import library
from .processes import in_child
from .ptxas_remarks import LONGEST_TAIL

# llvm::cl::ParseCommandLineOptions(int, const char *const *, StringRef, ...): all arguments after these have
# zero as their default, and one more of them does no harm (there are three or four).
PARSER = rb"_ZN4llvm2cl23ParseCommandLineOptionsEiPKPKcNS_9StringRefE\w+"
ANCHOR = rb"PyInit_libtriton"  # exported: its address minus its place in the file is the library's base
BISECTION = "-opt-bisect-limit"
GATE = "LLVM_IR_ENABLE_DUMP"  # if set, Triton's passes over LLVM IR are printed, and numbered, too
SILENCE = "-filter-print-funcs=none"  # print no function
_TABLES = (2, 11)  # sh_type: SHT_SYMTAB, SHT_DYNSYM
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_APPLIED: list[tuple[str, ...]] = []


def apply(flags: tuple[str, ...]) -> None:
    """Set options, once in a process: `disable-lsr`, `opt-bisect-limit=9`.

    Raises:
        RequestRefusedError: LLVM rejects them, or its parser is not found.
    """
    if flags in _APPLIED:
        return
    parse = _parser(library())
    words = ["triton", *(f"-{flag.lstrip('-')}" for flag in flags)]
    if bisects(flags) and GATE not in os.environ:
        os.environ[GATE] = "1"
        words.append(SILENCE)
    with tempfile.NamedTemporaryFile() as log:  # an option that is unknown ends the process
        answer = in_child(lambda: parse(words), log.name)
        said = log.read().decode(errors="replace").strip()
    if answer["status"] != "ok":
        why = said or answer["error"]
        raise RequestRefusedError("llvm", f"LLVM does not take --set-llvm {' '.join(flags)}", why=why)
    parse(words)
    _APPLIED.append(flags)


def bisects(flags: tuple[str, ...]) -> bool:
    """Report whether the flags stop LLVM after some of its passes, so that its log lists them."""
    return any(f"-{flag.lstrip('-')}".startswith(BISECTION) for flag in flags)


def shorten(path: str, flags: tuple[str, ...]) -> None:
    """Reduce a long log to LLVM's list of passes."""
    # AMD's machine passes are printed in spite of the filter.
    with open(path, "rb") as file:
        if not bisects(flags) or os.fstat(file.fileno()).st_size <= LONGEST_TAIL:
            return
        listed = [line for line in file if line.startswith(b"BISECT: ")]
    with open(path, "wb") as file:
        file.writelines(listed)


def _parser(path: str) -> Callable[[list[str]], None]:
    anchor = getattr(ctypes.CDLL(path), ANCHOR.decode())
    places = symbols(path, (PARSER, ANCHOR))
    if len(places) < 2:  # noqa: PLR2004 - both
        why = f"{path} has no symbol {PARSER.decode()}: it is stripped"
        raise RequestRefusedError("llvm", "LLVM's options cannot be set in this Triton", why=why)
    loaded = (ctypes.cast(anchor, ctypes.c_void_p).value or 0) - places[ANCHOR]
    words = ctypes.POINTER(ctypes.c_char_p)
    kinds: list[Any] = [ctypes.c_int, words, ctypes.c_char_p, *[ctypes.c_size_t] * 5]
    function = ctypes.CFUNCTYPE(ctypes.c_bool, *kinds)(loaded + places[PARSER])

    def parse(words: list[str]) -> None:
        array = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        function(len(words), array, b"", 0, 0, 0, 0, 0)

    return parse


def symbols(path: str, names: tuple[bytes, ...]) -> dict[bytes, int]:
    """Return the addresses of the symbols that match the patterns; missing ones are left out."""
    found: dict[bytes, int] = {}
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as raw:
        (start,), (size, count) = struct.unpack_from("<Q", raw, 40), struct.unpack_from("<HH", raw, 58)
        sections = [_SECTION.unpack_from(raw, start + number * size) for number in range(count)]
        for _, kind, _, _, offset, length, link, _, _, _ in sections:
            if kind not in _TABLES:
                continue
            begin, end = sections[link][4], sections[link][4] + sections[link][5]
            matches = ((name, re.compile(rb"\0" + name + rb"\0").search(raw, begin, end)) for name in names)
            places = {match.start() + 1 - begin: name for name, match in matches if match}
            for text, _, _, _, value, _ in _SYMBOL.iter_unpack(raw[offset : offset + length]):
                if text in places and value:
                    found[places[text]] = value
    return found
