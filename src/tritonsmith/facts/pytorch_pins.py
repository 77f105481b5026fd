"""Look up the Triton that a release of PyTorch pins, and read the torch of an interpreter.

Tables: `configs/pytorch-pins.toml`, and `configs/package-pins.toml` for packages that require one torch. The
torch of an interpreter is read from its metadata and its version.py; it is not imported.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from packaging.version import InvalidVersion, Version

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UsageError, did_you_mean
from tritonsmith.core.text import version_key
from tritonsmith.facts import package_owners
from tritonsmith.facts.package_owners import text_of_file
from tritonsmith.facts.python_env import PythonEnv

CONFIG = "pytorch-pins"
CHANNELS = ("cuda", "rocm", "xpu")  # those that the table has a row for
WHEEL = "wheel"
UNKNOWN = "unknown"
READ = "read"  # the grade of what `pins --live --update` read itself


@dataclass(frozen=True)
class Pin:
    """A Triton commit of a PyTorch release, and how it is known.

    Attributes:
        version: of Triton; empty if unknown.
        requires: requirement in the metadata of PyTorch's wheel; empty if unknown.
        commit: 40 digits; empty if unknown.
        grade: how the commit is known; a key of `grades()`.
        candidates: unconfirmed commits, likeliest first; never facts.
        same_file: this channel reads the pin file of CUDA.
        llvm: that Triton's own pin file names there, 40 digits, or 12 where upstream gives no more.
        llvm_grade: how that is known.
        how: what shows that a wheel was built from the commit.
        note: a remark.
        source: public places where it was seen.
    """

    version: str = ""
    requires: str = ""
    commit: str = ""
    grade: str = UNKNOWN
    candidates: tuple[str, ...] = ()
    same_file: bool = False
    llvm: str = ""
    llvm_grade: str = UNKNOWN
    how: str = ""
    note: str = ""
    source: tuple[str, ...] = ()


@dataclass(frozen=True)
class PyTorchRelease:
    """A release of PyTorch.

    Attributes:
        version: `2.9.1`.
        cuda: pin file of CUDA builds, and the version of Triton.
        rocm: of ROCm builds.
        xpu: of XPU builds; None where that release had none.
        wheel: the wheel `triton` on the package index.
    """

    version: str
    cuda: Pin
    rocm: Pin
    xpu: Pin | None
    wheel: Pin

    @property
    def own_pins(self) -> dict[str, Pin | None]:
        """Channel, or `wheel`, to what the table has for it."""
        return {"cuda": self.cuda, "rocm": self.rocm, "xpu": self.xpu, WHEEL: self.wheel}

    def pin(self, channel: str) -> Pin | None:
        """Return the pin that applies to a channel, whose pin file may be CUDA's; None if it has none."""
        # A channel that builds from CUDA's pin file has a row of its own only to say so.
        own = self.own_pins[channel]
        return self.cuda if own is not None and own.same_file else own

    @property
    def llvms_differ(self) -> bool | None:
        """Report whether the wheel's LLVM differs from the one at CUDA's pin; None if either is unknown."""
        if not self.cuda.llvm or not self.wheel.llvm:
            return None
        return self.cuda.llvm != self.wheel.llvm


@dataclass(frozen=True)
class PinMatch:
    """The release that a user's text selects.

    Attributes:
        release: the row.
        note: how the text was read, if it named no release to the letter; empty otherwise.
    """

    release: PyTorchRelease
    note: str = ""


@dataclass(frozen=True, kw_only=True)
class WheelName:
    """The name of a channel's wheel, over a range of releases.

    Attributes:
        channel: `cuda`, `rocm`, `xpu` or `windows`.
        kind: release, nightly, release candidate, or who builds it.
        name: of the distribution.
        since: first line of PyTorch that has it: `2.10`.
        until: last one; empty for no end yet.
        place: the index that has it.
        note: a remark.
        source: public places where it was seen.
    """

    channel: str
    kind: str
    name: str
    since: str
    until: str = ""
    place: str
    note: str = ""
    source: tuple[str, ...]


@dataclass(frozen=True)
class PinFile:
    """The place where a commit of PyTorch keeps a channel's pin.

    Attributes:
        channel: `cuda`, `rocm`, `xpu`, `cpu` or `windows`.
        title: the channel's display name.
        repository: the repository whose commits the file names.
        commit: paths of the file with the commit, the newest place first.
        version: paths of the file with Triton's version.
        otherwise: the channel whose file is read where there is none; empty for none.
    """

    channel: str
    title: str
    repository: str
    commit: tuple[str, ...]
    version: tuple[str, ...]
    otherwise: str = ""


def releases() -> tuple[PyTorchRelease, ...]:
    """Return every release of the table, oldest first."""
    return tuple(_release(row) for row in configs.load(CONFIG)["release"])


def grades() -> dict[str, str]:
    """Return the meaning of each grade."""
    return dict(configs.load(CONFIG)["grades"])


def titles() -> dict[str, str]:
    """Return the display name of each channel."""
    return {file.channel: file.title for file in pin_files()}


def pin_files() -> tuple[PinFile, ...]:
    """Return the places where PyTorch keeps its pins, per channel."""
    return tuple(configs.as_dataclass(PinFile, row) for row in configs.load(CONFIG)["pin-file"])


def wheel_names(version: str = "") -> tuple[WheelName, ...]:
    """Return the names of a PyTorch release's wheels; of all eras without a version."""
    rows = configs.load(CONFIG)["wheel-name"]
    # `from` is a keyword of Python, and cannot be a field.
    names = (configs.as_dataclass(WheelName, {**row, "place": row["from"]}) for row in rows)
    return tuple(name for name in names if not version or _covers(name, version))


def wheel_name(version: str, channel: str) -> str:
    """Return the distribution name of a release's own wheel of a channel; empty if unknown."""
    fitting = [name for name in wheel_names(version) if (name.channel, name.kind) == (channel, "release")]
    return fitting[0].name if fitting else ""


def find(text: str) -> PinMatch:
    """Return the release that a text names: `2.9.1`, `v2.9.1`, `2.9.1+cu128`, or `2.9` for its newest patch.

    Raises:
        UsageError: the table has none; the error names the nearest ones.
    """
    table = {release.version: release for release in releases()}
    # What people paste is a tag of git, or `torch.__version__` with the build's CUDA behind the `+`.
    plain = text.strip().removeprefix("v").partition("+")[0]
    if plain in table:
        note = "" if text == plain else f"{text} is read as {plain}"
        return PinMatch(table[plain], note)
    line = [version for version in table if re.fullmatch(rf"{re.escape(plain)}\.\d+", version)]
    if plain.count(".") == 1 and line:
        newest = max(line, key=version_key)
        return PinMatch(
            table[newest], f"{text} is read as {newest}, the newest release of that line in the table"
        )
    raise _unknown(text, plain, list(table))


def _unknown(text: str, plain: str, known: list[str]) -> UsageError:
    try:
        version = Version(plain)
    except InvalidVersion:
        return UsageError(
            f"{text!r} is not a version of PyTorch",
            hints=["a release: --pytorch 2.9.1, or --pytorch 2.9", *_elsewhere(text)],
        )
    # A nightly of today is unknown to every table that ships with the tool.
    if version.is_prerelease:
        return UsageError(
            f"the table has no unreleased builds, such as {text}",
            why="a nightly or a build from source has the pin of its own PyTorch commit",
            hints=_elsewhere("COMMIT", ", which is torch.version.git_version"),
        )
    hints = [f"nearest known releases: {', '.join(nearest(plain, known))}"]
    hints += _elsewhere(f"v{plain}" if plain.count(".") > 1 else "main")
    return UsageError(f"the table has no PyTorch {text}", hints=hints)


def _elsewhere(ref: str, remark: str = "") -> list[str]:
    return [f"read PyTorch's own pin file: {command('pins', live=True, ref=ref)}{remark}"]


def nearest(version: str, known: list[str]) -> list[str]:
    """Return the releases before and after a version (`2.9.7`), where there are any."""
    key = version_key(version)
    ordered = sorted(known, key=version_key)
    before = [name for name in ordered if version_key(name) < key]
    after = [name for name in ordered if version_key(name) > key]
    return before[-1:] + after[:1]


def llvm_at(commit: str) -> tuple[str, str]:
    """Return the LLVM at a commit of Triton in the table, and its grade; empty and `unknown` if none."""
    for release in releases():
        for pin in release.own_pins.values():
            if pin is not None and pin.commit == commit and pin.llvm:
                return pin.llvm, pin.llvm_grade
    return "", UNKNOWN


def _covers(name: WheelName, version: str) -> bool:
    line = version_key(version)[:2]
    return version_key(name.since) <= line and (not name.until or line <= version_key(name.until))


def _release(row: dict[str, Any]) -> PyTorchRelease:
    pins = {where: configs.as_dataclass(Pin, row[where]) for where in (*CHANNELS, WHEEL) if where in row}
    return configs.as_dataclass(PyTorchRelease, {"version": row["pytorch"], "xpu": None, **pins})


@dataclass(frozen=True)
class PackageRelease:
    """A release of a package that requires a release of torch, and so a Triton.

    Attributes:
        package: `vllm`.
        version: its version.
        torch: the release of PyTorch that it requires, exactly.
        source: the source of that requirement.
        triton_kernels: the tag of Triton whose `triton_kernels` it contains; empty if none, or unknown.
    """

    package: str
    version: str
    torch: str
    source: str
    triton_kernels: str = ""


def package_names() -> tuple[str, ...]:
    """Return the packages of the table."""
    return tuple(configs.load("package-pins")["package"])


def find_package(text: str) -> tuple[PackageRelease, ...]:
    """Return the releases of a package, newest first, or one of them: `vllm`, `vllm==0.26.0`.

    Raises:
        UsageError: the table has no such package or release.
    """
    name, _, version = text.partition("==")
    table = configs.load("package-pins")["package"]
    if name not in table:
        raise UsageError(f"the table has no package {name!r}", hints=did_you_mean(name, table))
    row = table[name]
    kernels = row.get("triton-kernels", {})
    every = tuple(
        PackageRelease(name, key, torch, row["source"], kernels.get(key, ""))
        for key, torch in row["torch"].items()
    )
    fitting = tuple(release for release in every if version in ("", release.version))
    if not fitting:
        hints = did_you_mean(version, [release.version for release in every])
        raise UsageError(f"the table has no {name} {version}", hints=hints)
    return fitting


# `cuda: Optional[str] = '12.8'`; older releases write no annotation.
_ASSIGNED = re.compile(r"^(\w+)\s*(?::[^=\n]*)?=\s*['\"]?([^'\"\n]*?)['\"]?\s*$", re.MULTILINE)
_GIT_COMMIT = re.compile(r"[0-9a-f]{7,40}")


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


def read_torch(packages: PythonEnv) -> Torch | None:
    """Return the torch that an import would find; None if there is none."""
    # A build that is on the path has a version.py, but no metadata.
    installed = next(
        (distribution for distribution in packages.distributions if distribution.name == "torch"), None
    )
    # In the order of the path: a source tree in front of site-packages is what an import finds.
    files = (entry / "torch" / "version.py" for entry in packages.path)
    text = next((text_of_file(path) for path in files if path.is_file()), "")
    assigned = {name: "" if value == "None" else value for name, value in _ASSIGNED.findall(text)}
    version = installed.version if installed else assigned.get("__version__", "")
    if not version:
        return None
    commit = assigned.get("git_version", "")
    return Torch(
        version=version,
        git_version=commit if _GIT_COMMIT.fullmatch(commit) else "",
        requires=package_owners.required_triton(installed, packages.minor) if installed else "",
        debug=assigned.get("debug", ""),
        cuda=assigned.get("cuda", ""),
        hip=assigned.get("hip", ""),
        xpu=assigned.get("xpu", ""),
    )
