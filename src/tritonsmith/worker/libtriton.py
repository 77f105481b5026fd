"""Use libtriton without Triton's package: the bindings that add passes, and the options of its LLVM."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import mmap
import os
import re
import struct
import sys
import tempfile
import types
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from .border import RequestRefusedError
from .processes import in_child
from .stage import LONGEST_TAIL

if TYPE_CHECKING:
    from .border import Table
    from .foreign import PassManager

SIGNATURE = re.compile(r"^\w+\((.*)\) -> ")
PARAMETER = re.compile(r"(?:^|, )\w+: ([^,\[\]]+(?:\[[^\]]*\])?)")
# Two values per argument type: the option that changes between them shows that argument.
PROBES: Table = {"int": (7001, 7002), "bool": (False, True), "str": ("first", "second")}

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


class UnusableError(Exception):
    """This Triton cannot serve the request."""


def library() -> str:
    """Return the path of libtriton.so."""
    spec = importlib.util.find_spec("triton")
    if spec is None or not spec.origin:
        raise UnusableError("this interpreter has no Triton")
    folder = os.path.join(os.path.dirname(spec.origin), "_C")
    # In the order of Python's own import: a library for another Python may be in the same folder.
    for ending in importlib.machinery.EXTENSION_SUFFIXES:
        path = os.path.join(folder, f"libtriton{ending}")
        if os.path.isfile(path):
            return path
    raise UnusableError(f"{os.path.dirname(spec.origin)} has no libtriton.so for this Python")


def load(path: str) -> Any:
    """Load the extension module without the package."""
    # A second copy would register its types again, which pybind11 refuses.
    if known := sys.modules.get("triton._C.libtriton"):
        return known
    # The package takes longer to import, and 3.0's needs setuptools.
    spec = importlib.util.spec_from_file_location("libtriton", path)
    assert spec is not None  # noqa: S101 - for the type checker
    assert spec.loader is not None  # noqa: S101
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def context_of(lib: types.ModuleType) -> Any:
    """Return a context with the dialects of Triton and of all backends."""
    context = lib.ir.context()
    lib.ir.load_dialects(context)
    for name in sorted(dir(lib)):
        part = getattr(lib, name)
        if name != "ir" and hasattr(part, "load_dialects"):
            part.load_dialects(context)
    return context


def bindings_of(lib: types.ModuleType) -> Iterator[tuple[Any, str, str]]:
    """Yield every `add_*` function below a module named `passes`: the module, its path, the name."""

    def walk(module: types.ModuleType, path: str) -> Iterator[tuple[Any, str, str]]:
        for name in sorted(dir(module)):
            part = getattr(module, name)
            if isinstance(part, types.ModuleType):
                yield from walk(part, f"{path}.{name}")
            elif name.startswith("add_") and callable(part):
                yield module, path, name

    for name in sorted(dir(lib)):
        part = getattr(lib, name)
        inner = part if name == "passes" else getattr(part, "passes", None)
        if isinstance(inner, types.ModuleType):
            yield from walk(inner, "passes" if name == "passes" else f"{name}.passes")


def binding(lib: types.ModuleType, path: str) -> Any:
    """Return the function of a path such as `nvidia.passes.ttgpuir.add_to_llvmir`."""
    value = lib
    for name in path.split("."):
        value = getattr(value, name)
    return value


def kinds_of(function: object) -> list[str] | None:
    """Return the types of a binding's arguments after the pass manager; None if its docstring lacks them."""
    # A function of pybind11 or nanobind has no other signature than the first line of its docstring.
    match = SIGNATURE.match((function.__doc__ or "").strip())
    if not match:
        return None
    kinds = [kind.strip() for kind in PARAMETER.findall(match[1].replace(", /", ""))]
    return [{"typing.SupportsInt": "int"}.get(kind, kind) for kind in kinds[1:]]


def value_of(lib: types.ModuleType, kind: str, number: int) -> Any:
    """Return the first or second sample value for an argument."""
    if kind in PROBES:
        return PROBES[kind][number]
    short = re.split(r"::|\.", kind)[-1]
    # What is left is a class of a backend that is made without arguments, such as nvidia.ClusterInfo.
    for name in sorted(dir(lib)):
        cls = getattr(getattr(lib, name), short, None)
        if isinstance(cls, type):
            return cls()
    raise UnusableError(f"no sample value for the type {kind}")


def add(lib: types.ModuleType, manager: PassManager, path: str, arguments: Iterable[Any]) -> None:
    """Call a binding."""
    values = [
        value_of(lib, argument["class"], 0) if isinstance(argument, dict) else argument
        for argument in arguments
    ]
    binding(lib, path)(manager, *values)


def apply(flags: tuple[str, ...]) -> None:
    """Set options of LLVM, once in a process: `disable-lsr`, `opt-bisect-limit=9`, as `opt` takes them.

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
    # LLVM's parser calls `exit` on an unknown option: it is tried in a child first.
    with tempfile.NamedTemporaryFile() as log:
        answer = in_child(lambda: parse(words), log.name)
        printed = log.read().decode(errors="replace").strip()
    if answer["status"] != "ok":
        why = printed or answer["error"]
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
    """Return LLVM's parser of options, which is in each libtriton.so."""
    # Up to 3.6 the library does not export it, but releases keep the symbol table, which has its address.
    # LLVM's C API has LLVMParseCommandLineOptions, which ignores unknown options silently.
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
    addresses: dict[bytes, int] = {}
    # Mapped and searched, not parsed: the library has hundreds of megabytes, and 100,000 symbols and more.
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
                    addresses[places[text]] = value
    return addresses
