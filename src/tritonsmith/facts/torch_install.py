"""Read the torch of an interpreter from its metadata and its version.py; it is not imported."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tritonsmith.facts import distributions
from tritonsmith.facts.editables import read_text
from tritonsmith.facts.python_env import PythonEnv

# `cuda: Optional[str] = '12.8'`; older releases write no annotation.
_ASSIGNED = re.compile(r"^(\w+)\s*(?::[^=\n]*)?=\s*['\"]?([^'\"\n]*?)['\"]?\s*$", re.MULTILINE)
_COMMIT = re.compile(r"[0-9a-f]{7,40}")


@dataclass(frozen=True)
class Torch:
    """An installed torch. Texts are empty where its version.py has nothing.

    Attributes:
        version: its version with the local part: `2.13.0+cpu`.
        git_version: commit of PyTorch.
        requires: its requirement of a Triton, as written; empty if it has none.
        debug: `True` or `False`: whether it is a debug build.
        cuda: the CUDA that it was built for; empty for none.
        hip: the same of HIP.
        xpu: the same of oneAPI's compiler.
    """

    version: str
    git_version: str
    requires: str
    debug: str = ""
    cuda: str = ""
    hip: str = ""
    xpu: str = ""


def read(packages: PythonEnv) -> Torch | None:
    """Return the torch that an import would find; None if there is none.

    A build that is on the path has a version.py, but no metadata.
    """
    installed = next(
        (distribution for distribution in packages.distributions if distribution.name == "torch"), None
    )
    files = (entry / "torch" / "version.py" for entry in packages.path)
    text = next((read_text(path) for path in files if path.is_file()), "")
    assigned = {name: "" if value == "None" else value for name, value in _ASSIGNED.findall(text)}
    version = installed.version if installed else assigned.get("__version__", "")
    if not version:
        return None
    commit = assigned.get("git_version", "")
    return Torch(
        version=version,
        git_version=commit if _COMMIT.fullmatch(commit) else "",
        requires=distributions.required_triton(installed, packages.minor) if installed else "",
        debug=assigned.get("debug", ""),
        cuda=assigned.get("cuda", ""),
        hip=assigned.get("hip", ""),
        xpu=assigned.get("xpu", ""),
    )
