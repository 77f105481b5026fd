"""Compute theoretical occupancy: the number of warps that a multiprocessor holds at once, and their limit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tritonsmith.core import configs

_KIB = 1024
_ENOUGH = 1 << 20  # blocks, if a resource limits nothing


@dataclass(frozen=True)
class Occupancy:
    """The blocks of a kernel that fit at once.

    Attributes:
        blocks: on a multiprocessor; work-groups on a compute unit (from gfx10 on a work-group processor).
        warps: warps or waves of these blocks.
        percent: share of the warps that there is room for.
        limiter: the resource that more blocks would need more of.
        refused: reason why not even one block can be launched: `shared 262144 > 232448 B`; empty if it can.
    """

    blocks: int
    warps: int
    percent: float
    limiter: str
    refused: str = ""

    @property
    def launch(self) -> str:
        """The answer in words whether a launch can succeed: `yes`, or `no` with the reason."""
        return f"no: {self.refused}" if self.refused else "yes"


@dataclass(frozen=True)
class _Need:
    """A resource that a block needs, with the maximum that one block may have."""

    name: str
    limiter: str
    used: int
    most: int
    unit: str = ""


def nvidia(
    arch: str,
    *,
    registers: int,
    threads: int,
    static: int,
    dynamic: int,
    barriers: int,
    tensor_columns: int = 0,
) -> Occupancy | None:
    """Return the occupancy of a kernel on an NVIDIA GPU; None if the GPU is unknown.

    Args:
        arch: compute capability without its point: `90`.
        registers: registers per thread.
        threads: threads per block.
        static: bytes of shared memory in the cubin.
        dynamic: bytes of shared memory that the launch requests.
        barriers: barriers per block.
        tensor_columns: columns of tensor memory.
    """
    table = configs.load("gpu-limits")["nvidia"]
    row: Mapping[str, Any] | None = table["arch"].get(arch)
    if row is None or not threads:
        return None
    # From 9.0 on, the cubin's static size includes what the driver reserves; it must not count twice.
    inside = row.get("reserved-in-cubin", False) and static >= row["reserved"]
    own = static + dynamic - (row["reserved"] if inside else 0)
    shared = own + row["reserved"]
    # The hardware launches whole warps, and a granule of registers belongs to a warp.
    warps = -(-threads // 32)
    allocated = warps * 32 * _rounded(registers, table["granule"])
    return _least(
        warps,
        row["warps"],
        {
            "warps": row["warps"] // warps,
            "registers": _by_registers(table["simds"], table["registers"], table["granule"], registers)
            // warps,
            "shared memory": _by_shared(row, shared),
            "blocks": row["blocks"],
            "barriers": row["barriers"] // barriers if barriers and "barriers" in row else _ENOUGH,
        },
        (
            _Need("threads", "warps", threads, table["threads"]),
            _Need("shared", "shared memory", own, row["shared-block"] * _KIB, " B"),
            _Need("registers", "registers", allocated, table["simds"] * table["registers"] * 32),
            _Need("tensor memory", "tensor memory", tensor_columns, table["tensor-columns"], " columns"),
        ),
    )


def amd(arch: str, *, wave: int, vgprs: int, sgprs: int, threads: int, lds: int) -> Occupancy | None:
    """Return the occupancy of a kernel on an AMD GPU; None if the GPU is unknown.

    Args:
        arch: `gfx942`.
        wave: lanes of a wave.
        vgprs: vector registers per lane, with the AGPRs if they share a register file.
        sgprs: scalar registers per wave.
        threads: threads per work-group.
        lds: bytes of local data share per work-group.
    """
    table, row = configs.load("gpu-limits")["amd"], _family(arch)
    if row is None or str(wave) not in row["registers"] or not threads:
        return None
    waves = -(-threads // wave)
    # On RDNA a work-group may use both compute units of a work-group processor, so limits are those of the
    # pair.
    most = row["waves"] * row["simds"]
    registers, granule = row["registers"][str(wave)], row["granule"][str(wave)]
    groups = {
        "waves": most // waves,
        "VGPRs": min(most, _by_registers(row["simds"], registers, granule, vgprs)) // waves,
        "LDS": _by_shared(row, lds),
        # Each work-group takes one of the hardware's barriers, but for one of a single wave.
        "work-groups": row["barriers"] if waves > 1 else most,
    }
    if "sgprs" in row:
        groups["SGPRs"] = _by_registers(row["simds"], row["sgprs"], row["sgpr-granule"], sgprs) // waves
    needs = (
        _Need("threads", "waves", threads, table["threads"]),
        _Need("LDS", "LDS", lds, row["shared-block"] * _KIB, " B"),
    )
    return _least(waves, most, groups, needs)


def simds(arch: str) -> int:
    """Return the SIMDs that share the waves of `amd`; 0 if the GPU is unknown."""
    row = _family(arch)
    return int(row["simds"]) if row else 0


def _family(arch: str) -> Mapping[str, Any] | None:
    table = configs.load("gpu-limits")["amd"]
    name = next((family for prefix, family in table["families"] if arch.startswith(prefix)), None)
    return table["family"][name] if name else None


def _by_registers(simds: int, available: int, granule: int, used: int) -> int:
    """Return the warps whose registers fit, over all SIMDs."""
    # A warp's registers lie in one SIMD: what is left over in two of them does not add up to a warp.
    return simds * (available // _rounded(max(used, 1), granule))


def _by_shared(row: Mapping[str, Any], used: int) -> int:
    # The hardware hands out shared memory in granules; a kernel without any is limited by something else.
    whole = row["shared"] * _KIB
    return int(whole // _rounded(used, row["shared-granule"])) if used else _ENOUGH


def _rounded(number: int, granule: int) -> int:
    return -(-number // granule) * granule


def _least(warps: int, most: int, blocks: Mapping[str, int], needs: Iterable[_Need]) -> Occupancy:
    """Return the smallest count, the first of equal ones; no blocks if one needs more than it may have."""
    if over := [need for need in needs if need.used > need.most]:
        refused = ", ".join(f"{each.name} {each.used} > {each.most}{each.unit}" for each in over)
        return Occupancy(0, 0, 0.0, over[0].limiter, refused)
    # `min` takes the first of equal ones, so the order of the table is the order of the advice.
    limiter = min(blocks, key=lambda name: blocks[name])
    held = blocks[limiter] * warps
    refused = "" if held else f"not one block fits: {limiter}"
    return Occupancy(blocks[limiter], held, 100 * held / most, limiter, refused)
