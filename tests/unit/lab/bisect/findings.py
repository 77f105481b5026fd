"""Findings of a bisect, for its page."""

from __future__ import annotations

from tritonsmith.facts.triton_history import TritonCommit
from tritonsmith.lab.bisect.report import BisectPage, BisectPoint, BisectTexts
from tritonsmith.lab.journal import Observation, Verdict

PTX = """.visible .entry k(
\t.param .u64 k_param_0
)
{{
\tld.param.u64 \t%rd1, [k_param_0];
\tld.global.{width} \t{{%r1}}, [%rd1+0];
\tret;
}}
"""
MLIR = """module {{
  tt.func @k(%arg0: i32) {{
    %0 = arith.{operation} %arg0, %arg0 : i32
    tt.return
  }}
}}
"""


def commit(digit: str, subject: str) -> TritonCommit:
    return TritonCommit(
        commit=digit * 40,
        parents=(),
        date="2026-08-01T10:00:00+02:00",
        subject=subject,
        pin="",
        bump=False,
        native="",
        areas=frozenset(),
        sources=1,
        headers=0,
    )


CULPRIT = commit("2", "[Pipeliner] Wait <later> (#123)")
FINDINGS = BisectPage(
    command="tritonsmith bisect --good 3.6.0 --bad 3.9.0 --kernel attention.py:bwd --when 'spills>0'",
    question="spills>0",
    points=(
        BisectPoint("3.6.0", "release", Observation(Verdict.GOOD, "spills 980", seconds=12.0), "2025-11-01"),
        BisectPoint("1" * 40, "pin", Observation(Verdict.GOOD, "spills 980", seconds=420.0), subject="Bump"),
        BisectPoint("4" * 40, "commit", Observation(Verdict.SKIP, why="cannot build: <error>")),
        BisectPoint("2" * 40, "commit", Observation(Verdict.BAD, "spills 4472", seconds=65.0)),
        BisectPoint("3.9.0", "release", Observation(Verdict.BAD, "spills 4472", seconds=12.0)),
    ),
    suspects=(CULPRIT,),
    stage=BisectTexts("ptx", "ptx", PTX.format(width="b32"), PTX.format(width="b8")),
    by_pass=BisectTexts(
        "tritongpu-coalesce",
        "mlir",
        MLIR.format(operation="addi"),
        MLIR.format(operation="muli"),
        "lib/Coalesce.cpp",
    ),
    notes=("4444444444 could not be built",),
)
