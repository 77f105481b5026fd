"""The parts of Triton to build: named targets, or those of a purpose (`--for`)."""

from __future__ import annotations

from pathlib import Path

from tritonsmith.core import configs
from tritonsmith.core.envs.schema import TritonSettings
from tritonsmith.facts import checkout


def resolve(settings: TritonSettings, root: Path) -> tuple[str, ...]:
    """Return Ninja's targets; none for all.

    Args:
        settings: the settings; named targets take precedence over a purpose.
        root: the checkout; its lit tests name the programs that they run.
    """
    if settings.targets or settings.for_ == "all":
        return settings.targets
    named: tuple[str, ...] = tuple(configs.load("triton-eras")["build-for"][settings.for_])
    if settings.for_ == "tests":
        programs = {path.stem for path in (root / "bin").glob("*.cpp")}
        named += tuple(name for name in checkout.lit_programs(root) if name in programs and name not in named)
    return named
