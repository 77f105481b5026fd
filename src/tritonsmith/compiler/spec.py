"""A side of a comparison: a Triton (release, environment, interpreter), targets, options; or a folder."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.version import Version

from tritonsmith.compiler import manifest, targets, values
from tritonsmith.compiler.request import CompileRequest, Sweep
from tritonsmith.compiler.targets import Target
from tritonsmith.core.envs import settings, workspace
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.facts import eras, installed_tritons
from tritonsmith.wheels import ptxas

WHEEL = "triton-"  # `triton-3.4.0`: the environment of a release
_VERSION = re.compile(r"\d+(\.\d+){1,2}((a|b|rc|\.post|\.dev)\d+)*", re.ASCII)
_OPTION = re.compile(r"([A-Za-z_]\w*)=(?!=)(.+)", re.ASCII | re.DOTALL)
_PTXAS = "ptxas"
_SITES = ("lib/python3*/site-packages", "lib/python3*/dist-packages")


@dataclass(frozen=True)
class CompilerSpec:
    """One side of a comparison. Of `env`, `version`, `python` and `folder` at most one is set.

    Attributes:
        label: the text that it was parsed from.
        env: an environment, by name or file.
        version: a release of Triton, in full: `3.4.0`.
        python: an interpreter, absolute.
        targets: its targets; those of the other flags if empty.
        options: of the backend, and constants of the kernel: name to value.
        folder: compiled kernels: an output folder, or a folder that contains some.
        ptxas: a ptxas other than the one of its Triton, in full: `13.0.88`.
    """

    label: str
    env: str = ""
    version: str = ""
    python: str = ""
    targets: tuple[Target, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    folder: Path | None = None
    ptxas: str = ""

    @property
    def triton(self) -> str:
        """The version of its Triton, as far as files tell; empty if they do not."""
        return self.version or (installed(Path(self.python)) if self.python else "")


def parse(text: str) -> CompilerSpec:
    """Parse a side: words between commas, as in `3.4.0,h100`, `debug,num_warps=8,ptxas=13.0`, `out/before`.

    `3.4` means 3.4.0, as in PEP 440, not the newest of its patches.

    Raises:
        UsageError: a word is none of these, or contradicts another.
        FactError: the package index does not tell whether it has a ptxas.
    """
    words = [word for word in values.split(text) if word]
    if not words:
        raise UsageError(
            "one side is empty", hints=["give a version (3.4.0), an environment, a target or an option"]
        )
    side = CompilerSpec(text.strip())
    for word in words:
        side = _with(side, word, alone=len(words) == 1)
    return side


def joined(words: Iterable[str]) -> list[str]:
    """Rejoin sides of a list that was split at every comma: `3.9.0`, `ptxas=13.0` are one side."""
    sides: list[str] = []
    for word in words:
        if sides and _OPTION.fullmatch(word):
            sides[-1] += f",{word}"
        else:
            sides.append(word)
    return sides


def applied(asked: CompileRequest, side: CompilerSpec) -> CompileRequest:
    """Return the request with the targets, options and constants of a side.

    Raises:
        UsageError: a sweep is over a name that the side sets.
    """
    # Each is a sweep of one value: this overrides the signature, and puts the value into the point's name.
    both = [sweep.name for sweep in asked.sweeps if sweep.name in side.options]
    if both:
        raise UsageError(f"both --sweep and the side {side.label} set {both[0]}", hints=["omit one of them"])
    fixed = tuple(Sweep(name, (values.spell(value),)) for name, value in side.options.items())
    return replace(asked, targets=side.targets or asked.targets, sweeps=(*asked.sweeps, *fixed))


def installed(python: Path) -> str:
    """Return the version of the Triton beside an interpreter, read from files; empty if there is none."""
    site = _site(python)
    return installed_tritons.version_in(site) if site else ""


def package(python: Path) -> Path:
    """Return the folder of the Triton beside an interpreter, unless that was installed from a checkout."""
    return (_site(python) or python.parent) / "triton"


def is_checkout(python: Path) -> bool:
    """Report whether that Triton is installed from a checkout: its package is then elsewhere."""
    site = _site(python)
    return site is not None and not (site / "triton" / "__init__.py").is_file()


def _site(python: Path) -> Path | None:
    prefix = python.parent.parent
    sites = (site for pattern in _SITES for site in sorted(prefix.glob(pattern)))
    return next((site for site in sites if installed_tritons.version_in(site)), None)


def _with(side: CompilerSpec, word: str, *, alone: bool) -> CompilerSpec:
    if match := _OPTION.fullmatch(word):
        return _with_option(side, match[1], match[2])
    if (named_targets := _targets(word)) is not None:
        return replace(side, targets=tuple(dict.fromkeys((*side.targets, *named_targets))))
    path = Path(word).expanduser().absolute()
    if path.is_dir() and next(path.rglob(manifest.FILE), None):
        if not alone:
            raise UsageError(
                f"{word} is already compiled and cannot be combined with other words",
                hints=[f"give {word} alone"],
            )
        return replace(side, folder=path)
    if side.env or side.version or side.python:
        raise UsageError(
            f"{side.label} names two Tritons: {side.env or side.version or side.python} and {word}",
            hints=["each side has one Triton; compare it with the other side"],
        )
    number = word.removeprefix(WHEEL)
    if _VERSION.fullmatch(number):
        return replace(side, version=full(number))
    if word.endswith(".toml") or word in {name for name, _, _ in settings.available()}:
        settings.find(word)
        return replace(side, env=word)
    if path.is_file() and os.access(path, os.X_OK):
        return replace(side, python=str(path))
    raise _unknown(word, path)


def _with_option(side: CompilerSpec, name: str, text: str) -> CompilerSpec:
    if name in side.options or (name == _PTXAS and side.ptxas):
        raise UsageError(f"{side.label} sets {name} twice", hints=["omit one of them"])
    if name == _PTXAS:
        return replace(side, ptxas=ptxas.resolve(text, ptxas.pip_python(Path(sys.executable))))
    return replace(side, options={**side.options, name: values.parse(text)})


def _targets(word: str) -> tuple[Target, ...] | None:
    try:
        return targets.parse_all([word])
    except UsageError:
        return None


def full(version: str) -> str:
    """Return a version with at least three numbers: `3.4.0` for `3.4`."""
    parsed = Version(version)
    number = ".".join(map(str, (*parsed.release, 0, 0)[: max(3, len(parsed.release))]))
    return f"{number}{str(parsed).removeprefix(parsed.base_version)}"


def _unknown(word: str, path: Path) -> UsageError:
    if wrong := targets.mistaken(word):
        return wrong
    if path.is_dir():
        python = path / "bin" / "python"
        hint = "invoke kernel.compile --out DIR creates such folders"
        hint = f"its interpreter: {python}" if python.is_file() else hint
        return UsageError(f"{word} is a folder without compiled kernels", hints=[hint])
    if "/" in word:
        return UsageError("no such interpreter, folder or env file", where=path)
    hints = [*did_you_mean(word, _known()), "options are NAME=VALUE, paths contain a /"]
    return UsageError(f"{word!r} is neither a Triton nor a target", hints=hints)


def _known() -> Iterator[str]:
    yield from (name for name, _, _ in settings.available())
    yield from (*targets.known(), targets.ALL)
    yield from (path.parent.name for path in workspace.default().root.glob(f"envs/{WHEEL}*/venv"))
    yield from (row.version for row in eras.releases())
