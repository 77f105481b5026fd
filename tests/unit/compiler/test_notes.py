from __future__ import annotations

from pathlib import Path

from tritonsmith.compiler import manifest, report
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.worker.messages import CompileHead, LedgerNews

DOUBT = "k.py:3: the code depends on the truth value of torch.x, a stand-in"
NEWS = [
    LedgerNews(
        {"torch.nn.Module": "k.py:2", "setuptools": "triton/runtime/build.py:7"},
        {"flash_attn": "k.py:4"},
        (DOUBT,),
    ),
    LedgerNews({f"torch.f{number}": "u.py:1" for number in range(5)}),
    LedgerNews(doubts=(DOUBT,)),
]


def test_what_all_processes_noted_is_told_once() -> None:
    replaced, warnings = manifest.stand_ins(NEWS), manifest.warnings(NEWS)
    assert replaced == {"torch.nn.Module": "k.py:2", **{f"torch.f{number}": "u.py:1" for number in range(5)}}
    assert warnings == (
        "k.py:4: flash_attn is not installed; without it, the code takes another path",
        DOUBT,
    )
    made = Manifest(Path("/out"), "k", "k.py", "", "", "", "", "", (), replaced, warnings)
    *told, names = report.notes(
        CompileHead("", {}, "", "", ""), made, CompileRequest(Path("k.py"), "k", "", ())
    )
    assert tuple(told) == warnings
    assert names == (
        "torch is not installed, and stand-ins replaced torch.nn.Module (k.py:2), torch.f0 (u.py:1), "
        "torch.f1 (u.py:1), torch.f2 (u.py:1) and 2 more"
    )
