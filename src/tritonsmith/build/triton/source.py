"""Locate Triton's sources: a flag, the env file, the checkout around the current folder, or a clone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.build.llvm.request import LlvmRequest
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import GitFetch, MakeDir, Plan, Run, stamped
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import eras
from tritonsmith.facts.checkout import LlvmPin, TritonCheckout

PHASE = "Triton sources"
_VERSION = re.compile(r"^(?:v|release/)?(\d+\.\d+)(?:\.[\dx]+)?$")


@dataclass(frozen=True)
class TritonSource:
    """The location of Triton's sources, and the plan that fetches them.

    Attributes:
        root: folder of the checkout.
        fetch: plan that fetches it; empty for an existing checkout.
    """

    root: Path
    fetch: Plan


def locate(settings: Settings, workspace: Workspace, cwd: Path) -> TritonSource:
    """Find the checkout. Order: `--source`, a path in the env file, the one around `cwd`, a clone.

    Args:
        settings: settings of the env.
        workspace: workspace for a clone.
        cwd: the current folder.

    Raises:
        FactError: no checkout and no URL is named.
    """
    source = settings.triton.source
    from_flag = dict(settings.origin).get("triton.source") == "command line"
    is_url = "://" in source or source.startswith("git@")
    around = checkouts.enclosing(cwd)
    if source and not is_url:
        return TritonSource(Path(source).expanduser().absolute(), Plan("Triton's sources are present"))
    if around and not (is_url and from_flag):
        return TritonSource(around, Plan("Triton's sources are present"))
    if not source:
        raise FactError(
            f"environment {settings.name!r} has no Triton source, and this folder is not in a checkout",
            where=cwd,
            hints=[
                "run this in a checkout, or give one: --source PATH",
                "or use another environment: --env dev",
            ],
        )
    return _clone(source, settings.triton.revision, settings.name, workspace)


def _clone(url: str, revision: str, name: str, workspace: Workspace) -> TritonSource:
    repository = workspace.sources / f"triton-{name}"
    git = ("git", "-C", str(repository))
    steps = (
        MakeDir(workspace.sources, phase=PHASE),
        GitFetch(repository, (url,), revision, phase=PHASE, blobless=False),
        Run((*git, "checkout", "--quiet", "--detach", "FETCH_HEAD"), cwd=workspace.sources, phase=PHASE),
    )
    done = workspace.sources / f".triton-{name}.done"
    fetched = done.exists() and repository.is_dir()  # from then on only the user moves it, by `git pull`
    return TritonSource(
        repository, Plan(f"Triton {revision} from {url}", () if fetched else stamped(steps, done, repository))
    )


def request_for(settings: Settings, checkout: TritonCheckout) -> LlvmRequest:
    """Return this checkout's requirements for an LLVM."""
    return LlvmRequest(checkout.pin, checkout.features, checkout.version, settings.llvm)


def request_for_revision(settings: Settings) -> LlvmRequest | None:
    """Return a release's requirements for an LLVM, without a checkout; None if the revision is no version."""
    match = _VERSION.match(settings.triton.revision)
    if not match:
        return None
    row = eras.release(match[1])
    pin = LlvmPin(row.llvm, f"configs/triton-eras.toml, Triton {row.version}") if row.llvm else None
    return LlvmRequest(pin, eras.features(row.version), row.version, settings.llvm)
