"""Requirements for an LLVM: a commit, and everything that this Triton's build needs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from tritonsmith.core import configs
from tritonsmith.core.envs.settings import LlvmSettings
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.checkout import LlvmPin
from tritonsmith.facts.llvm_tree import LlvmTree

Fit = Literal["pin", "unknown", "other"]

_DEBIAN = re.compile(r"/usr/lib/llvm-\d+")  # where Debian and Ubuntu install an LLVM
_PACKAGES = {
    "mlir": "MLIR's CMake package (lib/cmake/mlir)",
    "lld": "lld's CMake package (lib/cmake/lld)",
}


# Tool to the feature of the Tritons whose build runs it (empty for all), and its description.
_TOOLS = {
    "clang++": ("needs-clang", "clang++ (bin/clang++), which compiles Triton's gsan runtime"),
    "FileCheck": ("needs-filecheck", "FileCheck (bin/FileCheck)"),
    "mlir-tblgen": ("", "mlir-tblgen (bin/mlir-tblgen)"),
}


@dataclass(frozen=True)
class LlvmRequest:
    """The LLVM that `setup-mlir` looks for: `[llvm]` of the env, for a Triton with a version and features.

    `pin` is None if nothing names a commit; the features are those of `configs/triton-eras.toml`.
    """

    pin: LlvmPin | None
    features: frozenset[str]
    version: str
    settings: LlvmSettings

    @property
    def projects(self) -> tuple[str, ...]:
        """The value of `LLVM_ENABLE_PROJECTS`."""
        table = configs.load("triton-eras")["llvm-projects"]
        return ("mlir", *(project for feature, project in table.items() if feature in self.features))

    def fit(self, commit: str) -> Fit:
        """Compare an LLVM's commit with the pin."""
        if self.pin is None or not commit:
            return "unknown"
        return "pin" if llvm_tree.same_commit(commit, self.pin.commit) else "other"

    @property
    def tools(self) -> tuple[str, ...]:
        """The programs that this Triton's build runs."""
        return tuple(name for name, (feature, _) in _TOOLS.items() if not feature or feature in self.features)

    def lacks(self, tree: LlvmTree) -> list[str]:
        """List what this Triton's build needs and an LLVM lacks, in words; empty if nothing is missing."""
        missing = [
            words for name, words in _PACKAGES.items() if name in self.projects and name not in tree.packages
        ]
        missing += [_TOOLS[name][1] for name in self.tools if name not in tree.tools]
        shared = self.settings.shared
        if not tree.static and not (shared and tree.shared):
            missing.append(
                ("shared or " if shared else "")
                + "static component libraries (lib/libLLVMSupport.a, lib/libMLIRIR.a): "
                + _why_not_static(tree)
            )
        # Triton links the code generators of both vendors, whatever `--backends` says.
        backends = {name for name in self.settings.targets if name != "Native"} & {"NVPTX", "AMDGPU"}
        missing += [f"code generator {name}" for name in sorted(backends - tree.targets)]
        return missing

    def remedy(self, tree: LlvmTree) -> list[str]:
        """Return hints to install the packages that complete a distribution's LLVM; none for another LLVM."""
        # Only of Debian's prefixes is it known which package has which part.
        if not _DEBIAN.fullmatch(str(tree.prefix)):
            return []
        words = "; ".join(self.lacks(tree))
        parts = configs.load("system-packages")["llvm-part"]
        packages = dict.fromkeys(row["apt"] for row in parts if row["part"] in words)
        names = " ".join(packages).replace("NN", str(tree.major))
        return [f"install what is missing (Debian, Ubuntu): apt install {names}"] if names else []

    def describe_pin(self) -> str:
        """Describe the pin in words."""
        return f"{self.pin.commit[:12]} ({self.pin.file})" if self.pin else "unknown"


def _why_not_static(tree: LlvmTree) -> str:
    if tree.shared:
        return "only shared ones exist (`shared = true` under [llvm] allows them)"
    return "not built yet" if tree.build_tree else "linking only the dylib registers options twice"
