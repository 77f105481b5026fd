"""Where the time of a slow compile goes."""

from __future__ import annotations

from pathlib import Path

import pytest

from tritonsmith.compiler.manifest import Manifest, Point
from tritonsmith.lab.triage import kernel

pytestmark = pytest.mark.unit

# As Triton 3.9.0 prints them, with most rows left out.
LOG = """
  ----Wall Time----  ----Name----
    3.7846 (  6.9%)  ConvertTritonGPUToLLVM
    1.8929 (  3.4%)  'llvm.func' Pipeline
    0.0000 (  0.0%)    (A) DominanceInfo
   -0.0010 ( -1.1%)  Rest
   54.9343 (100.0%)  Total

   ---User Time---   --System Time--   --User+System--   ---Wall Time---  --- Name ---
  15.5362 ( 94.3%)   0.0202 ( 83.6%)  15.5564 ( 94.2%)  40.2850 ( 94.3%)  GPU Load and Store Vectorizer
  16.4837 (100.0%)   0.0242 (100.0%)  16.5079 (100.0%)  42.7182 (100.0%)  Total
"""


def point(log: str = "", seconds: float = 100.0, **cpu: float) -> Point:
    """A compile that took a time."""
    return Point("p", "cuda:75:32", {}, {}, {}, {}, "ok", seconds, log=log, cpu_seconds=cpu)


def manifest(name: str, *points: Point) -> Manifest:
    """A folder of compiles."""
    return Manifest(Path(name), "k", "k.py", "", "3.9.0", "", "3.11", "", points)


def test_passes_of_both_reports() -> None:
    assert list(kernel.pass_times(LOG)) == [
        (3.7846, "ConvertTritonGPUToLLVM"),
        (40.285, "GPU Load and Store Vectorizer"),
    ]


def test_what_takes_a_share_is_told() -> None:
    told = list(kernel.slow_parts([point(LOG, ttir=0.1, llir=21.3, ptx=18.0, cubin=1.6)]))
    assert told == [
        "of 41.0 CPU s: llir 21.3, ptx 18.0",
        "passes, by the compiler's clock, of 100.0 s: GPU Load and Store Vectorizer 40.3 s",
    ]
    assert next(kernel.slow_parts([point(cubin=9.0, llir=1.0)])).endswith("cubin (ptxas) 9.0, llir 1.0")


def test_cpu_time_stands_for_wall_time() -> None:
    made = kernel.with_cpu_seconds(manifest("a", point(llir=2.0), point()))
    assert [one.seconds for one in made.points] == [2.0, 100.0]


def test_a_little_quicker_is_not_quicker() -> None:
    assert kernel.too_slow(10.0, manifest("b", point(llir=8.0)))
    assert not kernel.too_slow(10.0, manifest("b", point(llir=5.0)))
