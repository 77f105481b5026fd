"""The operations that the docs say are not known, and some that are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import REPOSITORY
from tritonsmith.check import answer
from tritonsmith.check.answer import DialectCoverage
from tritonsmith.check.evaluate import OPERATIONS
from tritonsmith.core.errors import FactError

pytestmark = pytest.mark.unit

_PAGE = REPOSITORY / "docs" / "passes-check.md"


def test_what_the_docs_call_unknown_is_unknown() -> None:
    page = _PAGE.read_text(encoding="utf-8").partition("Not known, of 3.9.0:")[2].partition("## ")[0]
    named = [
        f"{dialect}.{name}"
        for dialect, names in re.findall(r"^- `(\w+)`: ((?:.*\n(?!-))*.*)", page, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    ]
    assert len(named) > 15
    assert not [name for name in named if name in OPERATIONS]
    for name in ("tt.load", "ttg.local_load", "ttng.tc_gen5_mma"):
        assert name in OPERATIONS


TABLEGEN = """
def Triton_Dialect : Dialect { let name = "tt"; let cppNamespace = "::mlir::triton"; }
class TT_Op<string mnemonic, list<Trait> traits = []> : Op<Triton_Dialect, mnemonic, traits> {}
def TT_LoadOp : TT_Op<"load"> { let summary = "load"; }
def TT_ForgetOp : TT_Op<"forget"> { let summary = "not there"; }
"""


def test_of_a_checkout_it_says_what_is_not_known(tmp_path: Path) -> None:
    folder = tmp_path / "include" / "triton" / "Dialect" / "Triton" / "IR"
    folder.mkdir(parents=True)
    (folder / "TritonOps.td").write_text(TABLEGEN, encoding="utf-8")
    assert answer.coverage_of_checkout(tmp_path) == [DialectCoverage("tt", ("load",), ("forget",))]
    with pytest.raises(FactError, match="defines an operation"):
        answer.coverage_of_checkout(folder.parent)


def test_all_that_is_known() -> None:
    known = {one.dialect: one for one in answer.coverage_of_all()}
    assert {"load", "dot", "return", "call"} <= set(known["tt"].known)
    assert {"for", "if", "while", "yield"} <= set(known["scf"].known)
    assert not any(one.unknown for one in known.values())
