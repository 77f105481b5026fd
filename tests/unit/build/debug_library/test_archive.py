"""Symbols tell how objects were compiled."""

from __future__ import annotations

import pytest

from tritonsmith.build.debug_library import archive

_LINES = """
/lib/libMini.a(Twice.cpp.o):	file format elf64-x86-64

SYMBOL TABLE:
0000000000000000 l    df *ABS*	0000000000000000 Twice.cpp
0000000000000000 g     F .text	0000000000000042 _ZN4mlir4mini5twiceB5cxx11Ei
0000000000000050 g     F .text	0000000000000042 .hidden _ZN4mlir4mini4halfEi
0000000000000000  w    F .text._ZN1aE	0000000000000010 _ZN1aE
0000000000000000 u     O .bss	0000000000000008 _ZGVunique
0000000000000000         *UND*	0000000000000000 _ZN4llvm24DisableABIBreakingChecksE
0000000000000000  w    O .data.rel.ro	0000000000000018 _ZTIN4mlir4PassE
""".splitlines()


def test_what_symbols_show() -> None:
    traits = archive.parse(_LINES)
    assert traits.strong == {"_ZN4mlir4mini5twiceB5cxx11Ei", "_ZN4mlir4mini4halfEi"}
    assert traits.hidden == {"_ZN4mlir4mini4halfEi"}
    assert (traits.checks, traits.rtti, traits.cxx11) == (False, True, True)
    assert (traits.assertions, traits.exceptions, traits.libcxx) == (False, False, False)


@pytest.mark.parametrize(
    ("name", "trait", "value"),
    [
        ("__assert_fail", "assertions", True),
        ("___assert_rtn", "assertions", True),
        ("_ZN4llvm23EnableABIBreakingChecksE", "checks", True),
        ("__gxx_personality_v0", "exceptions", True),
        ("_ZNSsC1EPKcRKSaIcE", "cxx11", False),
        ("_ZNSt3__112basic_stringIcE", "libcxx", True),
        ("puts", "cxx11", None),
        ("puts", "checks", None),
    ],
)
def test_a_symbol_that_is_asked_for(name: str, trait: str, value: bool | None) -> None:
    traits = archive.parse([f"0000000000000000         *UND*\t0000000000000000 {name}"])
    assert getattr(traits, trait) is value


def test_mach_o_prints_no_size() -> None:
    traits = archive.parse(["0000000000000000 g     F __TEXT,__text _main", "0000000000000000  *UND* _puts"])
    assert traits.strong == {"_main"}
