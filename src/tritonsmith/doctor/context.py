"""The facts that checks use, each read once, on first use."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.schema import Settings
from tritonsmith.core.envs.workspace import EnvDir, Workspace
from tritonsmith.core.errors import SmithError
from tritonsmith.doctor.finding import NotApplicableError
from tritonsmith.facts import (
    cache_roots,
    ccache,
    gpus,
    llvm_tree,
    machine,
    nvidia_smi,
    python_env,
    tools,
    triton_cache,
)
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts.ccache import Ccache
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.gpus import Gpus
from tritonsmith.facts.llvm_tree import LlvmTree
from tritonsmith.facts.machine import Machine
from tritonsmith.facts.nvidia_smi import SmiGpu
from tritonsmith.facts.python_env import PythonEnv
from tritonsmith.facts.tools import Tool
from tritonsmith.facts.triton_cache import Content


@dataclass
class DoctorContext:
    """An environment on a machine.

    Attributes:
        settings: the env.
        space: the workspace.
        environ: the environment's variables.
        python: an interpreter to check instead of the env's.
        cwd: the current folder.
        asked: path of the env file if one was given, for command lines; empty for a name.
        unreadable: error of an unreadable checkout; None if it is readable, or `checkout` was not read yet.
    """

    settings: Settings
    space: Workspace
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    python: Path | None = None
    cwd: Path = field(default_factory=Path.cwd)
    asked: str = ""
    unreadable: SmithError | None = field(default=None, init=False)

    @property
    def named(self) -> str:
        """The environment's name on a command line."""
        return self.asked or self.settings.name

    @property
    def env(self) -> EnvDir:
        """The env's folder."""
        return self.space.env(self.settings.name)

    @cached_property
    def host(self) -> Machine:
        """The machine."""
        return machine.read()

    @cached_property
    def programs(self) -> dict[str, Tool | None]:
        """The programs of `configs/tools.toml`, by name."""
        rows = configs.load("tools")["tool"]
        with ThreadPoolExecutor(len(rows)) as pool:  # each thread waits for a process
            return dict(zip((row["name"] for row in rows), pool.map(_find, rows), strict=True))

    @cached_property
    def ccache(self) -> Ccache | None:
        """The compiler cache's configuration and statistics."""
        program = self.programs["ccache"]
        return ccache.read(program.path) if program else None

    def receipt(self, task: str) -> dict[str, Any] | None:
        """Return the receipt that a task wrote in this env."""
        return receipts.read(self.env.receipt(task))

    @cached_property
    def checkout(self) -> TritonCheckout | None:
        """The env's Triton checkout; None if there is none, or it is `unreadable`.

        It is a path in its file, the one around the current folder, the last one built, or the env's clone.
        """
        root = self._checkout_root()
        try:
            return checkouts.read(root) if root else None
        except SmithError as error:
            self.unreadable = error
            return None

    def need_checkout(self) -> TritonCheckout:
        """Return `checkout`.

        Raises:
            NotApplicableError: there is no checkout.
        """
        if self.checkout is None:
            raise NotApplicableError("no Triton checkout found")
        return self.checkout

    def _checkout_root(self) -> Path | None:
        source = self.settings.triton.source
        if source and "://" not in source and not source.startswith("git@"):
            return Path(source).expanduser().absolute()
        built = (self.receipt("build-triton") or {}).get("source", "")
        clone = self.space.sources / f"triton-{self.settings.name}"
        candidates = (checkouts.enclosing(self.cwd), Path(built) if built else None, clone)
        return next((root for root in candidates if root and root.is_dir()), None)

    @property
    def llvm_prefix(self) -> Path | None:
        """The LLVM prefix for the env's builds: the configured one, the one used last, `LLVM_SYSPATH`."""
        named = self.settings.llvm.dir or self._last_llvm() or self.environ.get("LLVM_SYSPATH", "")
        return self.cwd / Path(named).expanduser() if named else None

    def _last_llvm(self) -> str:
        """Return the LLVM of the last setup-mlir or build-triton, which `--llvm-dir` may have overridden."""
        sources = ((self.receipt("setup-mlir") or {}, "prefix"), (self.receipt("build-triton") or {}, "llvm"))
        used = [
            (str(receipt.get("finished")), str(receipt[key])) for receipt, key in sources if receipt.get(key)
        ]
        return max(used, default=("", ""))[1]

    @cached_property
    def llvm(self) -> LlvmTree | None:
        """The LLVM at `llvm_prefix`; None if there is none (any more)."""
        prefix = self.llvm_prefix
        return llvm_tree.read(prefix) if prefix and llvm_tree.is_tree(prefix) else None

    @cached_property
    def interpreter(self) -> Path | None:
        """The Python to check: the one given, the env's, or that of the active environment."""
        if self.python:
            return self.python
        active = [self.environ.get(name, "") for name in ("VIRTUAL_ENV", "CONDA_PREFIX")]
        folders = [Path(folder) for folder in active if folder and Path(folder) != Path(sys.prefix)]
        candidates = (self.env.python, *(folder / "bin" / "python" for folder in folders))
        return next((path for path in candidates if path.exists()), None)

    @cached_property
    def caches(self) -> tuple[Content, ...]:
        """The contents of Triton's caches; of many entries, only some are read."""
        left = int(configs.load("triton-cache")["doctor"]["entries"])
        contents = []
        for root in cache_roots.find(self.environ, self.space):
            contents.append(triton_cache.scan(root, limit=left))
            left -= len(contents[-1].entries)
        return tuple(contents)

    @cached_property
    def gpus(self) -> Gpus:
        """The GPUs of this machine, and their driver."""
        return gpus.read()

    @cached_property
    def smi(self) -> tuple[SmiGpu, ...] | str:
        """The values of nvidia-smi for each GPU, or the reason why there are none."""
        try:
            return nvidia_smi.read()
        except nvidia_smi.SmiError as error:
            return str(error)

    @cached_property
    def packages(self) -> PythonEnv | None:
        """The facts about `interpreter`; None if there is none, or it does not run."""
        return python_env.read(self.interpreter) if self.interpreter else None

    def need_packages(self) -> PythonEnv:
        """Return `packages`; `python.version` reports an interpreter that exists but does not run.

        Raises:
            NotApplicableError: there is no working interpreter.
        """
        if self.packages is None and self.interpreter:
            raise NotApplicableError(f"{self.interpreter} is not a working Python")
        if self.packages is None:
            raise NotApplicableError("no working interpreter: neither the environment's nor an active one")
        return self.packages

    @property
    def installed_triton(self) -> str:
        """The version of the distribution that owns `triton/` in `interpreter`; empty if there is none."""
        installed = dict(self.packages.dists) if self.packages else {}
        owners = self.packages.triton_owners if self.packages else ()
        return next((installed[name] for name in owners), "")

    @property
    def triton_version(self) -> str:
        """The version to check: the checkout's, else the installed Triton's; empty if there is neither."""
        return self.checkout.version if self.checkout else self.installed_triton


def _find(row: Mapping[str, Any]) -> Tool | None:
    names = tools.versioned(row["name"]) if row.get("versioned") else []
    return tools.own(row["name"]) if row.get("own") else tools.find(row["name"], names=names)
