"""The provider `prebuilt`: upstream's own archive for the pin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.build.store.store import Store
from tritonsmith.core import configs
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.plan import Download, Extract, Plan, Remove, stamped
from tritonsmith.core.versions import version_key
from tritonsmith.facts.machine import Machine

PHASE_DOWNLOAD = "download LLVM"
PHASE_EXTRACT = "extract LLVM"


@dataclass(frozen=True)
class PrebuiltArchive:
    """Upstream's archive for one pin and one kind of machine.

    Attributes:
        url: expected URL.
        sha256: its checksum; empty where upstream publishes none.
        suffix: `ubuntu-x64` ...
        note: a reason why it may not run here or why another suffix was chosen; may be empty.
    """

    url: str
    sha256: str
    suffix: str
    note: str = ""

    @property
    def name(self) -> str:
        """The file name without its extension."""
        return self.url.rsplit("/", 1)[-1].removesuffix(".tar.gz")


def suffix_for(machine: Machine, version: str) -> str:
    """Return upstream's suffix for a machine, by its own rules; empty where it builds none.

    Old versions of Triton had one more rule.
    """
    if machine.system == "Linux" and not machine.glibc:
        return ""  # musl: every build links glibc
    for rule in configs.load("triton-eras")["prebuilt"]["suffix"]:
        if _matches(rule, machine, version):
            return str(rule["suffix"])
    return ""


def archive_for(request: LlvmRequest, machine: Machine, base_url: str = "") -> PrebuiltArchive | None:
    """Return the archive for a request; None without a pin, or if none is built for this machine.

    `base_url` is a mirror with the same files; empty for upstream's.
    """
    suffix = suffix_for(machine, request.version)
    if not suffix or request.pin is None:
        return None
    table = configs.load("triton-eras")["prebuilt"]
    sums = dict(request.pin.sha256)
    note = ""
    abi = table["abi"].get(suffix)
    # Upstream chooses the suffix by the distribution's name, and its ubuntu archive needs a newer glibc
    # than some Ubuntus have (triton#7088).
    if abi and _too_old(machine, abi):
        note = (
            f"the {suffix} build needs glibc {abi['glibc']} and GLIBCXX_{abi['glibcxx']}, "
            f"this machine has glibc {machine.glibc or '?'} and GLIBCXX_{machine.glibcxx or '?'}; "
            f"using {abi['instead']} instead"
        )
        suffix = abi["instead"]
    build = f"-{request.pin.build}" if request.pin.build is not None else ""
    url = str(table["url"]).format(hash8=request.pin.commit[:8], suffix=suffix, build=build)
    if base_url:
        url = f"{base_url.rstrip('/')}/{url.rsplit('/', 1)[-1]}"
    return PrebuiltArchive(url, sums.get(suffix, "") or request.settings.sha256, suffix, note)


def plan(archive: PrebuiltArchive, workspace: Workspace, store: Store) -> Plan:
    """Return the recipe: download, verify, extract, and rename to the final name last."""
    target = store.path(archive.name)
    file = workspace.downloads / archive.url.rsplit("/", 1)[-1]
    steps = stamped(
        (
            Download(archive.url, archive.sha256, file, phase=PHASE_DOWNLOAD),
            # Without a stamp the content of a folder of this name is unknown.
            Remove((target,), store.owner, phase=PHASE_EXTRACT),
            Extract(file, target, store.owner, phase=PHASE_EXTRACT),
        ),
        store.root / f".{archive.name}.done",
        target,
    )
    return Plan(f"upstream's prebuilt LLVM in {target}", steps, (archive.note,) if archive.note else ())


def at_hand(archive: PrebuiltArchive, workspace: Workspace, store: Store) -> bool:
    """Report whether the archive is already downloaded or unpacked, so that no server is needed."""
    file = workspace.downloads / archive.url.rsplit("/", 1)[-1]
    steps = plan(archive, workspace, store).steps
    return file.is_file() or all(step.stamp and step.stamp.holds() for step in steps)


def _matches(rule: dict[str, Any], machine: Machine, version: str) -> bool:
    if (rule["system"], rule["machine"]) != (machine.system, machine.arch):
        return False
    if "os" in rule and rule["os"] != machine.os_id:
        return False
    if "until" in rule and version_key(version)[:2] > version_key(rule["until"]):
        return False
    return "glibc" not in rule or version_key(machine.glibc) <= version_key(rule["glibc"])


def _too_old(machine: Machine, abi: dict[str, str]) -> bool:
    glibcxx = version_key(machine.glibcxx)
    return version_key(machine.glibc) < version_key(abi["glibc"]) or (
        bool(glibcxx) and glibcxx < version_key(abi["glibcxx"])
    )
