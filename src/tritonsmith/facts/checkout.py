"""Read a Triton checkout, and look up what a version of Triton is like where there is no checkout.

A checkout's features, pins and build requirements come from its files alone: nothing of it is run. Those of
versions are in `configs/triton-eras.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import FactError, UsageError, did_you_mean
from tritonsmith.core.text import version_key
from tritonsmith.facts import git

_CONFIG = "triton-eras"
_BRANCHED = timedelta(weeks=7)  # from a branch to NN.1.0: six or some more (discourse.llvm.org/t/84245)
_PIPS_DEFAULT = ("setuptools>=40.8.0", "wheel")  # where there is no pyproject.toml, as in 2.0
# What a checkout names becomes a part of paths, URLs and command lines, where `..` and `--option` mean more.
_COMMIT = re.compile(r"[0-9a-fA-F]{7,40}")
_NUMBER = re.compile(r"\d[\w.+-]*")
# No path: pip installs `name==/../evil.tar.gz` from the file of that name.
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9][^/\\\x00-\x1f\x7f]*|[A-Za-z0-9][\w.\[\], -]*@ ?(git\+)?https?://[^\x00-\x20\x7f]+"
)
LIT_SITE = "lit.site.cfg.py"  # what CMake configures of the tests
_TEST_SUFFIXES = (".mlir", ".ll", ".py", ".td", ".test", ".txt")
_RUN = re.compile(rb"RUN:\s*(.*)")
_PROGRAM = re.compile(r"[A-Za-z][\w.+-]*$")
_BETWEEN = re.compile(r"\|\||&&|[|;]")
_WRAPPERS = ("not", "env", "count")  # take a program as their argument


@dataclass(frozen=True)
class TritonRelease:
    """One release line of Triton.

    Attributes:
        version: `3.5`.
        commit: the commit of triton-lang/triton that the row was read from.
        python: oldest and newest minor version.
        requires: the build's requirements in its environment, as requirement strings.
        llvm: pin, as many hex digits as are known; empty if unknown.
        wheels: releases on the package index, oldest first.
        branched: the commit of main that its branch was cut from, if that is known not to be `commit`.
    """

    version: str
    commit: str
    python: tuple[str, str]
    requires: tuple[str, ...]
    llvm: str = ""
    wheels: tuple[str, ...] = ()
    branched: str = ""

    @property
    def branch_point(self) -> str:
        """The last commit of main in the release, as far as the table knows."""
        return self.branched or self.commit


def triton_releases() -> tuple[TritonRelease, ...]:
    """Return all release lines, oldest first."""
    return tuple(configs.as_dataclass(TritonRelease, row) for row in configs.load(_CONFIG)["release"])


def triton_release(version: str) -> TritonRelease:
    """Return the release line of a version: `3.5.1` to 3.5; a newer one to the newest.

    Raises:
        UsageError: older than all of them, or not a version.
    """
    key = version_key(version)[:2]
    # A version beyond the table is a development tree: the newest row describes it best.
    fitting = [row for row in triton_releases() if version_key(row.version) <= key]
    if not key[1:] or not fitting:
        raise UsageError(
            f"unknown Triton release line {version!r}",
            hints=did_you_mean(version, [row.version for row in triton_releases()]),
        )
    return fitting[-1]


def clang_released(major: int) -> str | None:
    """Return the date of clang MAJOR.1.0, ISO 8601; None if it is not listed."""
    date = configs.load(_CONFIG)["clang-released"].get(str(major))
    return str(date) if date else None


def llvm_branched(major: int) -> date | None:
    """Return when the APIs of LLVM MAJOR were fixed, give or take two weeks; None if it is not listed."""
    released = clang_released(major)
    return date.fromisoformat(released) - _BRANCHED if released else None


def full_commit(short: str) -> str:
    """Return all 40 digits of an LLVM pin that an old setup.py abbreviates, where a row has them."""
    return next((row.llvm for row in triton_releases() if row.llvm.startswith(short)), short)


def features_of(version: str) -> frozenset[str]:
    """Return the names of the features that a version has."""
    return frozenset(row["name"] for row in configs.load(_CONFIG)["feature"] if _covers(row, version))


def cmake_options_of(version: str) -> frozenset[str]:
    """Return the CMake options and cache variables that a version knows."""
    table = configs.load(_CONFIG)["options"]
    return frozenset(name for name, row in table.items() if _covers(row, version))


def feature_probes() -> dict[str, dict[str, Any]]:
    """Return, by feature, the file whose text shows the feature in a checkout, with that text."""
    return {row["name"]: row["probe"] for row in configs.load(_CONFIG)["feature"]}


def cmake_options() -> frozenset[str]:
    """Return every CMake option that some version knows."""
    return frozenset(configs.load(_CONFIG)["options"])


def lit_requirement() -> str:
    """Return the requirement of the lit that Triton's tests run with."""
    return str(configs.load(_CONFIG)["lit"]["requirement"])


def relaxed_warnings() -> tuple[str, ...]:
    """Return flags for warnings that newer compilers add."""
    return tuple(row["flag"] for row in configs.load(_CONFIG)["relaxed-warning"])


def _covers(row: dict[str, Any], version: str) -> bool:
    number = version_key(version)[:2]
    return version_key(row["since"]) <= number <= version_key(row.get("until", "99"))


@dataclass(frozen=True)
class LlvmPin:
    """An LLVM that a Triton commit pins; there can be several.

    Attributes:
        commit: hex digits, 40 where the file gives them all.
        file: file of the checkout with the pin.
        role: `core`, or `amd` for the AMD code generator's own.
        build: upstream's build number of the prebuilt archive, if any.
        sha256: suffix (`ubuntu-x64`) to checksum of the prebuilt archive.
    """

    commit: str
    file: str
    role: str = "core"
    build: int | None = None
    sha256: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class TritonCheckout:
    """A source tree of Triton.

    Attributes:
        root: absolute path.
        version: the version in setup.py; development trees lag behind or run ahead.
        features: names from `configs/triton-eras.toml` that this tree has.
        options: CMake options that its top CMakeLists.txt knows.
        pins: LLVM commits, the core's first.
        requires: the build's requirements in the Python environment, as requirement strings.
        nvidia: component to version of NVIDIA's toolchain.
        json_version: version of nlohmann/json.
        python: oldest and newest minor version that it supports.
        commit: HEAD; empty outside git.
        committed: date of that commit, ISO 8601.
        dirty: tracked files differ from HEAD.
        git_problem: git's error if it is under git but git fails; empty otherwise.
    """

    root: Path
    version: str
    features: frozenset[str]
    options: frozenset[str]
    pins: tuple[LlvmPin, ...]
    requires: tuple[str, ...]
    nvidia: tuple[tuple[str, str], ...]
    json_version: str
    python: tuple[str, str]
    commit: str = ""
    committed: str = ""
    dirty: bool = False
    git_problem: str = ""

    def has(self, feature: str) -> bool:
        """Return whether this tree has a feature of `configs/triton-eras.toml`."""
        return feature in self.features

    @property
    def setup_dir(self) -> Path:
        """The folder that pip installs."""
        return self.root if self.has("root-setup") else self.root / "python"

    @property
    def pin(self) -> LlvmPin | None:
        """The core's LLVM."""
        return next((pin for pin in self.pins if pin.role == "core"), None)


def read(root: Path) -> TritonCheckout:
    """Read the checkout with this top folder.

    Raises:
        FactError: not a checkout of Triton, or one of its files cannot be read.
    """
    try:
        return _read(root.expanduser().absolute())
    except (OSError, UnicodeDecodeError) as error:
        where = getattr(error, "filename", None) or root
        raise FactError("cannot read this checkout of Triton", where=where, why=str(error)) from error


def _read(root: Path) -> TritonCheckout:
    setup = _setup(root)
    if setup is None or not (root / "include" / "triton").is_dir():
        raise FactError(
            "this folder is not a checkout of Triton",
            where=root,
            why="it has no setup.py (nor python/setup.py) beside include/triton",
            hints=["give one: --source PATH", "or change to one: cd path/to/triton"],
        )
    setup_text = untrusted.read_text(setup)
    version = _version(root, setup_text)
    head = git.head(root)
    return TritonCheckout(
        root=root,
        version=version,
        features=frozenset(name for name, probe in feature_probes().items() if _probe(root, probe)),
        options=_options(root),
        pins=tuple(_pins(root, setup_text)),
        requires=_requires(root, setup, setup_text),
        nvidia=_nvidia(root, setup_text),
        json_version=_json_version(root, setup_text),
        python=_python_range(setup_text, version),
        commit=head.commit,
        committed=head.committed,
        dirty=head.dirty,
        git_problem=head.problem,
    )


def enclosing(folder: Path) -> Path | None:
    """Return the checkout around a folder, or None."""
    return next(filter(_is_checkout, (folder, *folder.parents)), None)


def _is_checkout(folder: Path) -> bool:
    return all(path.is_dir() for path in _signs(folder))


def _signs(folder: Path) -> tuple[Path, Path]:
    # Every version has these two folders: setup.py has moved from python/ to the top.
    return folder / "include" / "triton", folder / "third_party"


def signs_around(folder: Path) -> tuple[Path, ...]:
    """Return the paths by which `enclosing` decides."""
    return tuple(sign for candidate in (folder, *folder.parents) for sign in _signs(candidate))


def pin_of(root: Path) -> LlvmPin | None:
    """Return the core's LLVM pin of a checkout, without reading the rest of it; None if no file has one.

    Raises:
        FactError: the file that names it cannot be read.
    """
    setup = _setup(root)
    pins = _pins(root, untrusted.read_text(setup)) if setup else ()
    return next((pin for pin in pins if pin.role == "core"), None)


def _setup(root: Path) -> Path | None:
    return next((root / name for name in ("setup.py", "python/setup.py") if (root / name).is_file()), None)


def _probe(root: Path, probe: dict[str, Any]) -> bool:
    files = [probe["file"]] if isinstance(probe["file"], str) else probe["file"]
    text = probe.get("contains")
    for name in files:
        path = root / name
        if text is None and path.exists():
            return True
        if text is not None and untrusted.is_file(path):
            content = untrusted.read_text(path)
            # A feature may be moved elsewhere later: `lacks` tells the two states of one file apart.
            if text in content and probe.get("lacks", "\0") not in content:
                return True
    return False


def _options(root: Path) -> frozenset[str]:
    # By words, not by `option(...)`: some are set or only read, and a comment that names one does no harm.
    lists = root / "CMakeLists.txt"
    words = set(re.findall(r"\w+", untrusted.read_text(lists) if lists.is_file() else ""))
    return frozenset(cmake_options() & words)


def _version(root: Path, setup_text: str) -> str:
    """Return the version in setup.py, or else the package's."""
    # By the constant's name: setup.py of 2.x has CUDA's versions in the same form.
    match = re.search(r"""TRITON_VERSION\s*=\s*["'](\d+\.\d+\.\d+)""", setup_text)
    if not match:
        init = root / "python" / "triton" / "__init__.py"
        text = untrusted.read_text(init) if init.is_file() else ""
        match = re.search(r"""__version__\s*=\s*["'](\d+\.\d+\.\d+)""", text)
    if not match:
        raise FactError("cannot determine the version of this checkout", where=root / "setup.py")
    return match[1]


def _pins(root: Path, setup_text: str) -> Iterable[LlvmPin]:
    """Yield the LLVM pins of a checkout, the core's first."""
    # Three places in Triton's history, newest first: llvm-info.json since 3.8 (7190a1c3c7, #10358),
    # llvm-hash.txt, and setup.py before. A bisection meets each.
    info, named = root / "cmake" / "llvm-info.json", root / "cmake" / "llvm-hash.txt"
    if info.is_file():
        yield _json_pin(info, "core")
    elif text := _first_line(named):
        yield LlvmPin(_checked(text, _COMMIT, named), "cmake/llvm-hash.txt")
    elif match := re.search(r"""["'/]llvm-[\d.]+-([0-9a-f]{12,40})["'/]""", setup_text):
        # setup.py abbreviates the hash; the table has it in full.
        yield LlvmPin(full_commit(match[1]), "python/setup.py")
    amd = root / "cmake" / "amd-llvm-info.json"
    if amd.is_file():
        yield _json_pin(amd, "amd")


def _json_pin(path: Path, role: str) -> LlvmPin:
    try:
        content = untrusted.read_json(path)
        sums = content.get("sha256sum", {})
        return LlvmPin(
            commit=_checked(str(content["llvm_hash"]), _COMMIT, path),
            file=f"cmake/{path.name}",
            role=role,
            build=_build_number(content, path),
            sha256=tuple(sorted((str(name), str(value)) for name, value in sums.items())),
        )
    except (ValueError, KeyError, AttributeError) as error:
        why = f"{type(error).__name__}: {error}"
        raise FactError("cannot read this pin file", where=path, why=why) from error


def _checked(text: str, form: re.Pattern[str], file: Path) -> str:
    if form.fullmatch(text):
        return text
    raise _cannot_be(text, file)


def _cannot_be(text: str, file: Path) -> FactError:
    what = "this file of the checkout has an invalid value"
    return FactError(what, where=file, why=repr(text[:80]))


def _build_number(content: dict[str, Any], file: Path) -> Any:
    number = content.get("build_number")
    if number is not None:
        _checked(str(number), _NUMBER, file)
    return number


def _requires(root: Path, setup: Path, setup_text: str) -> tuple[str, ...]:
    """Return [build-system] requires, and the pybind11 that older eras download by themselves."""
    project = setup.with_name("pyproject.toml")
    try:
        table = untrusted.read_toml(project) if project.is_file() else {}
    # A checkout in the middle of a merge has `<<<<<<<` in it.
    except ValueError as error:
        raise FactError("this file is not valid TOML", where=project, why=str(error)) from error
    section = table.get("build-system", {})
    named = section.get("requires", _PIPS_DEFAULT) if isinstance(section, dict) else section
    if not isinstance(named, (list, tuple)):
        raise _cannot_be(str(named), project)
    requires = [str(name) for name in named]
    # Before pybind11 was a requirement, setup.py downloaded its headers; this tool's builds do not let it.
    if not any(name.startswith(("pybind11", "nanobind")) for name in requires):
        pinned = _first_line(root / "cmake" / "pybind11-version.txt")
        match = re.search(r"pybind11-(\d+\.\d+\.\d+)", setup_text)
        if version := pinned or (match[1] if match else ""):
            requires.append(f"pybind11=={version}")
    return tuple(_checked(name, _REQUIREMENT, project) for name in requires)


def _nvidia(root: Path, setup_text: str) -> tuple[tuple[str, str], ...]:
    """Return the versions from cmake/nvidia-toolchain-version.{json,txt}; 2.x has them in setup.py."""
    listing = root / "cmake" / "nvidia-toolchain-version.json"
    if listing.is_file():
        try:
            versions = dict(untrusted.read_json(listing))
        except (ValueError, TypeError) as error:
            raise FactError("this file is not valid JSON", where=listing, why=str(error)) from error
        named = ((str(name), _checked(str(at), _NUMBER, listing)) for name, at in versions.items())
        return tuple(sorted(named))
    single = root / "cmake" / "nvidia-toolchain-version.txt"
    version = _first_line(single)
    if version:
        _checked(version, _NUMBER, single)
    else:
        # 2.0 has its ptxas in git.
        match = re.search(r"version\s*=\s*[\"'](12\.\d+\.\d+)[\"']", setup_text)
        version = match[1] if match else ""
    names = ("cudacrt", "cudart", "cuobjdump", "cupti", "nvdisasm", "ptxas")
    return tuple((name, version) for name in names if version and name in setup_text)


def _json_version(root: Path, setup_text: str) -> str:
    file = root / "cmake" / "json-version.txt"
    if named := _first_line(file).lstrip("v"):
        return _checked(named, _NUMBER, file)
    match = re.search(r"nlohmann/json/releases/download/v([\d.]+)/", setup_text)
    return match[1] if match else ""


def _python_range(setup_text: str, version: str) -> tuple[str, str]:
    match = re.search(r"MIN_PYTHON = \((\d+), (\d+)\)\s+MAX_PYTHON = \((\d+), (\d+)\)", setup_text)
    if match:
        return f"{match[1]}.{match[2]}", f"{match[3]}.{match[4]}"
    # Older versions have no such constants in their setup.py.
    return triton_release(version).python


def _first_line(path: Path) -> str:
    return untrusted.read_text(path).strip().split("\n")[0].strip() if path.is_file() else ""


def lit_programs(checkout: Path) -> tuple[str, ...]:
    """Return the names of the programs that the lit tests below `test/` of a checkout call, sorted."""
    # From the RUN lines, not from a list kept by hand, which every new test would make wrong.
    names: set[str] = set()
    for path in (checkout / "test").rglob("*"):
        if path.suffix not in _TEST_SUFFIXES or not path.is_file():
            continue
        for line in _RUN.findall(untrusted.read_bytes(path)):
            names.update(_called(line.decode("utf-8", errors="replace")))
    return tuple(sorted(names))


def is_lit_test(path: str, text: str) -> bool:
    """Return whether a file is a lit test: it has RUN lines, unlike Python's own tests."""
    return not path.endswith(".py") or ("RUN:" in text and "test" in Path(path).parts[:1])


def _called(line: str) -> Iterator[str]:
    # A word is the program of its command unless an assignment or a wrapper stands before it.
    for command in _BETWEEN.split(line):
        for word in command.split():
            if "=" in word or word.startswith("-"):
                continue  # a variable or an option of a wrapper
            if not _PROGRAM.match(word):
                break
            yield word
            if word not in _WRAPPERS:
                break
