"""The numbers of parallel compiles and links, each bounded by cores and by memory."""

from __future__ import annotations

from dataclasses import dataclass

from tritonsmith.core import configs
from tritonsmith.core.envs.schema import DebugInfo, ToolchainSettings
from tritonsmith.facts.machine import Machine


@dataclass(frozen=True)
class Jobs:
    """The bounds for one build, each at least 1."""

    compile: int
    link: int


def bound(machine: Machine, settings: ToolchainSettings, debug_info: DebugInfo) -> Jobs:
    """Return the jobs that cores and memory (with the cgroup's limit) allow; settings override unless 0."""
    need = configs.load("resources")["memory"]
    by_memory = int(machine.memory_gib / need["compile-job"])
    compile_jobs = settings.jobs or max(1, min(machine.cores, by_memory))
    links = int(machine.memory_gib / need["link-job"][debug_info])
    return Jobs(compile_jobs, settings.link_jobs or max(1, min(compile_jobs, links)))
