"""Find kernels that a few registers keep from one more block on a multiprocessor."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tritonsmith.compiler.resources import occupancy
from tritonsmith.compiler.resources.occupancy import Occupancy
from tritonsmith.core import configs
from tritonsmith.inspect.lint.compiled import CompiledPoint
from tritonsmith.inspect.lint.finding import LintFinding, StageLine, rules

_REGISTER = re.compile(r"\bR(\d+)\b")
_THREADS = (".reqntid", ".maxntid")


def near_next_block(one: CompiledPoint) -> Iterator[LintFinding]:
    """Yield a finding if one allocation step fewer registers would fit one more block."""
    values = one.row.values
    name = "registers_per_thread" if one.nvidia else "vgprs_per_lane"
    table = configs.load("lint")["occupancy"]
    registers, step = values.get(name), table["step"]
    if not isinstance(registers, int) or registers <= step:
        return
    now, then = _fits(one, registers), _fits(one, registers - step)
    if (
        now is None
        or then is None
        or not now.blocks
        or then.blocks <= now.blocks
        or (now.percent >= table["enough"])
    ):
        return
    least = next(less for less in range(1, step + 1) if _blocks(one, registers - less) > now.blocks)
    of = "registers of a thread" if one.nvidia else "VGPRs of a lane"
    what = (
        f"{registers} {of}, {least} too many for {then.blocks} blocks instead of {now.blocks}: occupancy "
        f"{now.percent:.0f} % instead of {then.percent:.0f} %"
    )
    yield LintFinding(rules()["registers-near-block"], what, tuple(_evidence(one)))


def _blocks(one: CompiledPoint, registers: int) -> int:
    fits = _fits(one, registers)
    return fits.blocks if fits else 0


def _fits(one: CompiledPoint, registers: int) -> Occupancy | None:
    values = {key: value for key, value in one.row.values.items() if isinstance(value, int)}
    threads = values.get("threads_per_block", 0)
    if one.nvidia:
        return occupancy.nvidia(
            one.point.arch,
            registers=registers,
            threads=threads,
            static=values.get("shared_static_bytes", 0),
            dynamic=values.get("shared_dynamic_bytes", 0),
            barriers=values.get("barriers", 0),
            tensor_columns=one.point.metadata.get("tmem_size") or 0,
        )
    return occupancy.amd(
        one.point.arch,
        wave=values.get("wave_size", 0),
        vgprs=registers,
        sgprs=values.get("sgprs_per_wave", 0),
        threads=threads,
        lds=values.get("lds_bytes", 0),
    )


def _evidence(one: CompiledPoint) -> Iterator[StageLine]:
    if not one.nvidia:
        yield next(line for line in one.lines("amdgcn") if line.text.startswith(".vgpr_count:"))
        return
    yield max(one.lines("sass"), key=lambda line: max(map(int, _REGISTER.findall(line.text)), default=-1))
    yield from (line for line in one.lines("ptx") if line.text.startswith(_THREADS))
