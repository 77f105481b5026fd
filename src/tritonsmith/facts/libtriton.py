"""Read the built library `libtriton.so`: its LLVM and how it was built, in milliseconds.

It has 200 to 700 MB and is not read whole: the section headers locate the few hundred KB that are. LLVM's
version, and its commit if the build was given it (wheels since 3.3), are together in `.data`, which holds the
producer's name of `llvm/lib/Object/IRSymtab.cpp` (`getExpectedProducerName`), an array and no constant.
"""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.facts import elf

# `23.0.0git 1f126a6dea50d185c0781743a667390037ae88bd`; a release's tarball has no commit: `19.1.7`.
_PRODUCER = re.compile(rb"(?<=\0)(\d\d\.\d+\.\d+(?:git|svn|-?rc\d+)?)(?: ([0-9a-f]{40}))?(?=\0)")
_TAG = re.compile(r"libtriton\.(?P<tag>cpython-\d+[a-z]*|abi3t?|pypy\d+)\b")
_LAST_NAME = re.compile(rb"(?=(\d+)([A-Za-z_]\w*)$)", re.ASCII)
_MANGLED = 300  # bytes of a symbol that may stand before the name of a method
_LARGEST = 64 << 20  # bytes of a section that are read; a damaged file may name all of a disk
_COMMENT = 1 << 16  # bytes of what the compilers say of themselves
_Section = tuple[int, int]  # offset and size in bytes


@dataclass(frozen=True)
class Libtriton:
    """One built library.

    Attributes:
        path: the file.
        machine: the machine that it is for: `x86_64`, `aarch64`; empty if it is no 64-bit ELF file.
        tag: Python's tag in the file's name: `cpython-311`, `cpython-314t`, `abi3`; empty for `libtriton.so`.
        llvm_version: `23.0.0git`; empty if it is not in the file: LLVM is linked as a shared library.
        llvm_commit: 40 hex digits; empty if LLVM did not record it.
        compilers: the compilers and linkers that built it, as they name themselves.
        debug_info: it carries DWARF.
        asan: it calls AddressSanitizer's runtime.
        asserts: it calls `assert`'s failure: of Triton or of LLVM, at least one has assertions.
    """

    path: Path
    machine: str = ""
    tag: str = ""
    llvm_version: str = ""
    llvm_commit: str = ""
    compilers: tuple[str, ...] = ()
    debug_info: bool = False
    asserts: bool = False
    asan: bool = False


def find(package: Path) -> tuple[Path, ...]:
    """Return the libraries of an installed or built package `triton`; more than one is a fault."""
    # With the dot, or libtriton_amd_codegen.so would be one.
    return tuple(sorted((package / "_C").glob("libtriton.*so")))


def has_text(path: Path, text: str) -> bool:
    """Return whether a program has a constant text, or one that ends with it: linkers merge suffixes.

    Raises:
        OSError: it cannot be read.
    """
    with untrusted.opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return content.find(text.encode() + b"\0") >= 0


def classes_with(path: Path, method: str) -> Iterator[str]:
    """Yield the names of classes that have a method, by a program's symbols, without namespaces.

    Source: the Itanium C++ ABI, "Mangling": each name is preceded by its length, arguments of a template are
    between `I` and `E`.

    Raises:
        OSError: it cannot be read.
    """
    ended = f"{len(method)}{method}E".encode()
    with untrusted.opened(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        at = content.find(ended)
        while at >= 0:
            # The Itanium ABI writes each name after its length. The digits before a name may be the end of
            # another name, so each split is tried, and the length decides.
            for match in _LAST_NAME.finditer(content[max(0, at - _MANGLED) : at]):
                size, name = int(match[1]), match[2]
                if size and (len(name) == size or (name[size : size + 1] == b"I" and name.endswith(b"E"))):
                    yield name[:size].decode()
            at = content.find(ended, at + 1)


def read(path: Path) -> Libtriton:
    """Read a library's properties.

    Raises:
        OSError: it cannot be read.
    """
    named = _TAG.match(path.name)
    tag = named["tag"] if named else ""
    machine = elf.machine_of(path)
    if not machine:
        return Libtriton(path, tag=tag)
    with untrusted.opened(path) as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as content:
        # Searches are confined to single sections: a Debug library has 2 GB, of which the
        # constants are a small part.
        sections = elf.section_extents(content)
        version, commit = _producer(content, sections)
        return Libtriton(
            path,
            machine,
            tag,
            version,
            commit,
            _compilers(content, sections),
            debug_info=".debug_info" in sections,
            # Imported names, not definitions: glibc's `assert` calls __assert_fail, and
            # ASan's constructor __asan_init.
            asserts=_has(content, sections, ".dynstr", b"\0__assert_fail\0"),
            asan=_has(content, sections, ".dynstr", b"\0__asan_init\0"),
        )


def _producer(content: mmap.mmap, sections: Mapping[str, _Section]) -> tuple[str, str]:
    producers = _PRODUCER.finditer(content, *_span(sections, ".data"))
    hits = [(hit[1].decode(), (hit[2] or b"").decode()) for hit in producers]
    return max(hits, key=lambda hit: bool(hit[1]), default=("", ""))


def _compilers(content: mmap.mmap, sections: Mapping[str, _Section]) -> tuple[str, ...]:
    begin, end = _span(sections, ".comment", _COMMENT)
    names = content[begin:end].decode("utf-8", "replace").split("\0")
    return tuple(sorted({name.strip() for name in names if name.strip()}))


def _has(content: mmap.mmap, sections: Mapping[str, _Section], name: str, text: bytes) -> bool:
    return content.find(text, *_span(sections, name)) >= 0


def _span(sections: Mapping[str, _Section], name: str, most: int = _LARGEST) -> tuple[int, int]:
    """Return the start and end of a section, as far as it is read; an empty span for a missing one."""
    offset, size = sections.get(name, (0, 0))
    return offset, offset + min(size, most)
