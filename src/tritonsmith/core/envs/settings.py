"""Merge settings of an environment: defaults, the user's file, env files and flags; each value has an origin.

The data classes are the schema of env files. Unknown keys are errors; every key has a default.
"""

from __future__ import annotations

import dataclasses
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import UnionType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import platformdirs

from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import consent, workspace
from tritonsmith.core.errors import ConfigError, UsageError, did_you_mean

BuildType = Literal["Debug", "RelWithDebInfo", "Release", "MinSizeRel"]
TritonBuildType = Literal[
    "Debug", "RelWithDebInfo", "Release", "MinSizeRel", "TritonRelBuildWithAsserts", "TritonBuildWithO1"
]
Provider = Literal["auto", "system", "store", "prebuilt", "source"]
DebugInfo = Literal["mlir", "split", "full", "lines", "none"]
SPLIT_DWARF = ("mlir", "split")  # kinds of debug information that are in .dwo files beside the objects
Sanitizer = Literal["", "address", "undefined", "thread"]
Linker = Literal["lld", "mold", "default"]
Launcher = Literal["ccache", "sccache", "recc", "none"]
Scope = Literal["closure", "python-module", "all"]
Headers = Literal["auto", "on", "off"]
Purpose = Literal["opt", "python", "tests", "all"]
Distribute = Literal["", "icecc"]


@dataclass(frozen=True)
class TritonSettings:
    """`[triton]`: which Triton, and how to build it.

    Attributes:
        wheel: a released wheel instead of a checkout: `newest` or a version; empty for a checkout.
        source: a path of a checkout, or a git URL.
        revision: branch, tag or commit to fetch from a URL.
        build_type: CMake build type, Triton's own two included.
        backends: folders of `third_party/` to build.
        plugin_dirs: out-of-tree backends (`TRITON_PLUGIN_DIRS`).
        proton: build the profiler.
        sanitizer: instrument Triton (for tools such as `triton-opt`; not for GPU code).
        targets: Ninja targets; empty for those of `for`.
        for_: what to build: `triton-opt`, the Python module, what the lit tests run, or all.
        cmake_args: more `-DNAME=VALUE`, appended last.
        werror: keep upstream's `-Werror` for warnings that newer compilers are known to add.
        precompiled_headers: inject precompiled headers of what most sources include; `auto` if it saves time.
    """

    wheel: str = ""
    source: str = ""
    revision: str = "main"
    build_type: TritonBuildType = "TritonRelBuildWithAsserts"
    backends: tuple[str, ...] = ("nvidia", "amd")
    plugin_dirs: tuple[str, ...] = ()
    proton: bool = False
    sanitizer: Sanitizer = ""
    targets: tuple[str, ...] = ()
    for_: Purpose = "all"
    cmake_args: tuple[str, ...] = ()
    werror: bool = False
    precompiled_headers: Headers = "auto"


@dataclass(frozen=True)
class LlvmSettings:
    """`[llvm]`: where LLVM/MLIR comes from.

    Attributes:
        provider: `auto` uses the first that fits the pin.
        source: git URL, checkout, or tarball (path or URL) for the provider `source`; empty for upstream.
        sha256: of a tarball, or of a prebuilt archive that upstream gives no checksum for.
        dir: prefix of an installed LLVM for the provider `system`.
        prebuilt_url: folder URL of a mirror of upstream's archives; empty for upstream's own.
        any_commit: accept an LLVM that is not at the pin.
        build_type: CMake build type.
        assertions: build with assertions.
        targets: LLVM code generators; `Native` is the host's.
        scope: what to build: what this Triton links and tests with, what its Python module links, or all.
        ninja_targets: what to build of LLVM instead of a scope.
        debug_info: `mlir` for all of MLIR and the lines of LLVM; all in .dwo files (`split`), all in the
            objects (`full`), lines only, or none.
        debug_libraries: single libraries that are recompiled at `-O0 -g` (`debug-library`).
        precompiled_headers: inject a precompiled header of LLVM's common includes; `auto` if it saves time.
        optimized_tablegen: optimise the table generators of a Debug build, and leave out their assertions.
        thin_archives: archives that reference their objects instead of containing them.
        shared: one shared object per library (`BUILD_SHARED_LIBS`): links faster, not for wheels.
        store: folder of LLVM builds that several environments or users share; empty for the workspace's.
    """

    provider: Provider = "auto"
    source: str = ""
    sha256: str = ""
    dir: str = ""
    prebuilt_url: str = ""
    any_commit: bool = False
    build_type: BuildType = "RelWithDebInfo"
    assertions: bool = True
    targets: tuple[str, ...] = ("Native", "NVPTX", "AMDGPU")
    scope: Scope = "closure"
    ninja_targets: tuple[str, ...] = ()
    debug_info: DebugInfo = "mlir"
    debug_libraries: tuple[str, ...] = ()
    precompiled_headers: Headers = "auto"
    optimized_tablegen: bool = True
    thin_archives: bool = True
    shared: bool = False
    store: str = ""


@dataclass(frozen=True)
class PythonSettings:
    """`[python]`: the env's interpreter.

    Attributes:
        interpreter: version (`3.11`) or path; empty for the one that runs the tool.
        torch: PyTorch that `up` installs: `cpu` for the newest for the CPU, `2.13.0+cpu` for that release.
    """

    interpreter: str = ""
    torch: str = "none"


@dataclass(frozen=True)
class ToolchainSettings:
    """`[toolchain]`: the compiler and the linker.

    Attributes:
        compiler: path of a clang++; empty to search for one, the LLVM's own version first.
        linker: `lld`, `mold`, or the compiler's default.
        jobs: compile jobs; 0 for what cores and memory allow.
        link_jobs: link jobs; 0 for what memory allows.
    """

    compiler: str = ""
    linker: Linker = "lld"
    jobs: int = 0
    link_jobs: int = 0


@dataclass(frozen=True)
class CacheSettings:
    """`[cache]`: the compiler cache.

    Attributes:
        launcher: program that runs each compile; ignored if it is not installed.
        remote: ccache's second storage: `redis://`, `http://` or `file://`; empty for none.
        remote_write: also put results there; for the one trusted writer (CI).
        distribute: send compiles that miss the cache to other machines.
    """

    launcher: Launcher = "ccache"
    remote: str = ""
    remote_write: bool = False
    distribute: Distribute = ""


@dataclass(frozen=True)
class Settings:
    """The settings of an environment.

    Attributes:
        name: name of the environment.
        origin: key (`llvm.build-type`) to the origin of its value; a missing key has its default.
    """

    name: str
    triton: TritonSettings = field(default_factory=TritonSettings)
    llvm: LlvmSettings = field(default_factory=LlvmSettings)
    python: PythonSettings = field(default_factory=PythonSettings)
    toolchain: ToolchainSettings = field(default_factory=ToolchainSettings)
    cache: CacheSettings = field(default_factory=CacheSettings)
    origin: tuple[tuple[str, str], ...] = ()


_SECTIONS: Mapping[str, type] = {
    "triton": TritonSettings,
    "llvm": LlvmSettings,
    "python": PythonSettings,
    "toolchain": ToolchainSettings,
    "cache": CacheSettings,
}

INHERITS = "inherits"  # the environment whose settings an env file begins with

Layer = tuple[str, Mapping[str, Any]]  # where it came from; "section.key" -> value


_NAME = ("a name", re.compile(r"\w[\w.+-]*"))
# Ninja's targets are files, too. One that installs would write to /usr/local, or take it away from there.
_TARGET = (
    "a name of a target that installs nothing",
    re.compile(r"(?!(.*/)?(un)?install(?![^/_-]))[^-\x00-\x20\x7f][^\x00-\x1f\x7f]*"),
)
_PLACE = ("a path or a URL", re.compile(r"[^-\x00-\x20\x7f][^\x00-\x1f\x7f]*"))
_VERSION = r"[0-9]+(\.[0-9]+)*((a|b|rc)[0-9]+)?(\.post[0-9]+)?(\.dev[0-9]+)?(\+[a-z0-9]+([._-][a-z0-9]+)*)?"
# Every value that is free text becomes a word of a command line, or a path: the form that each must have.
FORMS = {
    "triton.wheel": ("`newest` or a version such as 3.6.0", re.compile(f"newest|{_VERSION}")),
    "triton.source": _PLACE,
    # What git fetches: no option, and no refspec, which would name a ref to write.
    "triton.revision": (
        "a branch, a tag or a commit",
        re.compile(r"(?!.*(\.\.|//|@\{))[\w.][^\x00-\x20\x7f~^:?*\[\\]*"),
    ),
    "triton.backends": _NAME,
    "triton.plugin-dirs": ("a folder", re.compile(r"[^-\x00-\x20\x7f;][^\x00-\x1f\x7f;]*")),  # a CMake list
    "triton.targets": _TARGET,
    "triton.cmake-args": ("-DNAME=VALUE", re.compile(r"-D[\w.+-]+(:[A-Z]+)?=[^\x00]*")),
    "llvm.source": _PLACE,
    "llvm.sha256": ("a SHA-256 checksum (64 hex digits)", re.compile(r"[0-9a-fA-F]{64}")),
    "llvm.dir": _PLACE,
    "llvm.prebuilt-url": ("a URL (http, https or file)", re.compile(r"(https?|file)://[^\x00-\x20\x7f]+")),
    "llvm.targets": _NAME,
    "llvm.ninja-targets": _TARGET,
    "llvm.debug-libraries": _NAME,
    "llvm.store": _PLACE,
    "python.interpreter": (
        "a version such as 3.12, or a path",
        re.compile(r"[0-9]+\.[0-9]+t?|(?=[^\x00]*/)[^-\x00-\x20\x7f][^\x00-\x1f\x7f]*"),
    ),
    "python.torch": (
        "`none`, `cpu` or a version for the CPU such as 2.13.0+cpu",
        re.compile(r"none|cpu|[0-9]+(\.[0-9]+)+\+cpu"),
    ),
    "toolchain.compiler": _PLACE,
    "cache.remote": _PLACE,
}


def load(
    name: str,
    flags: Mapping[str, Any] | None = None,
    remembered: Layer | None = None,
    *,
    only_shown: bool = False,
) -> Settings:
    """Return the settings of an environment.

    Args:
        name: of an env file (`dev`), the path of one (ends in `.toml`), or `triton-3.4.0` for that release.
        flags: `section.key` to a value from the command line; None values are left out.
        remembered: a layer between the file and the flags: the settings of an earlier task.
        only_shown: nothing that they name will be run, so no consent is needed.

    Raises:
        UsageError: no such environment, or a flag has a value outside its choices.
        ConfigError: a file has an unknown key or a wrong value, or needs consent.
    """
    release = _release(name)
    path = find("wheel" if release else name)
    user = user_settings_file()
    layers: list[Layer] = []
    if user.is_file():
        layers.append((str(user), _read(user)))
    chain = _lineage(path, name)
    layers += [(str(file), table) for file, table, _ in chain]
    layers += [(name, {"triton.wheel": release})] if release else []
    layers += [remembered] if remembered else []
    on_line = {key: value for key, value in (flags or {}).items() if value is not None}
    layers.append(("command line", on_line))
    settings = resolve(name if release else name_of(path), layers)
    # Every file of the chain, not only the last: a checkout's may inherit from the user's own, or the user's
    # from a checkout's.
    for file, table, given_as in () if only_shown else chain:
        # Files in these folders are the user's or the tool's own.
        if file.parent not in _folders():
            consent.check(file, table, workspace.default(), _around(given_as))
    return settings


def values_needing_consent(name: str) -> tuple[Path, dict[str, Any]]:
    """Return an env file, and its values that need consent.

    Raises:
        UsageError: no such file.
        ConfigError: it has an unknown key or a wrong value.
    """
    load(name, only_shown=True)
    path = find(name)
    if path.parent in _folders():
        return path, {}
    return path, consent.named(path, _read(path, heir=True), _around(name))


def _lineage(path: Path, name: str) -> list[tuple[Path, dict[str, Any], str]]:
    """Return an env file and those that it inherits from: file, table and given name; the eldest first.

    Raises:
        ConfigError, UsageError: a file is wrong or missing, or inherits from itself.
    """
    chain: list[tuple[Path, dict[str, Any], str]] = []
    while name:
        # A circle would never end.
        if any(path == file for file, _, _ in chain):
            raise ConfigError("this env file inherits from itself", where=path)
        table = _read(path, heir=True)
        chain.append((path, table, name))
        name = table.pop(INHERITS, "")
        if not isinstance(name, str):
            raise ConfigError(f"{INHERITS} must be the name or path of an environment", where=path)
        # Beside this file: its meaning must not depend on the current folder.
        if name.endswith(".toml"):
            name = str(path.parent / Path(name).expanduser())
        path = find(name) if name else path
    return chain[::-1]


def files_behind(name: str) -> tuple[Path, ...]:
    """Return the files and folders that decide what `load` returns; empty if the user's consent does, too.

    Raises:
        ConfigError, UsageError: as `load`.
    """
    folders = _folders()
    chain = [file for file, _, _ in _lineage(find(name), name)]
    if any(file.parent not in folders for file in chain):
        return ()
    known = (path for folder in folders for path in folder.glob("*.toml"))
    return user_settings_file(), *folders, *known, *chain


def _release(name: str) -> str:
    """Return the release of an environment that was created on demand, `triton-3.4.0`; empty for others."""
    match = re.fullmatch(r"triton-(\d+\.\d+\.\d+\w*)", name)
    return match[1] if match and name not in {known for known, _, _ in available()} else ""


def resolve(name: str, layers: list[Layer]) -> Settings:
    """Merge layers, later ones over earlier ones.

    Raises:
        ConfigError, UsageError: an unknown key, a wrong type, a value outside its choices.
    """
    values: dict[str, dict[str, Any]] = {section: {} for section in _SECTIONS}
    origin: dict[str, str] = {}
    for source, table in layers:
        for key, value in table.items():
            section, field, hint = _known(key, source)
            values[section][field] = _checked(value, hint, key, source)
            origin[key] = source
    built: dict[str, Any] = {section: kind(**values[section]) for section, kind in _SECTIONS.items()}
    return Settings(name=name, origin=tuple(origin.items()), **built)


def find(name: str) -> Path:
    """Find an env file by name: the user's own, then those that ship with the tool.

    Raises:
        UsageError: there is none.
    """
    if name.endswith(".toml"):
        path = Path(name).expanduser()
        if not path.is_file():
            raise UsageError("no such env file", where=path, hints=["check the path"])
        file = path.resolve()
        if not _is_name(name_of(file)):
            raise UsageError("not a valid environment name", where=file, hints=["rename the file"])
        return file
    known = {stem: path for stem, path, _ in available()}
    if name in known:
        return known[name]
    raise UsageError(
        f"no environment named {name!r}",
        why=f"looked in {', '.join(map(str, _folders()))}",
        hints=did_you_mean(name, known),
    )


def name_of(path: Path) -> str:
    """Return the name of an env file's environment."""
    # Not `Path.stem`, whose answer for `...toml` depends on the version of Python.
    return path.name.removesuffix(".toml")


def _is_name(name: str) -> bool:
    """Return whether an environment may have this name; without a letter or digit its folder may be `..`."""
    return bool(re.search(r"\w", name))


def _around(name: str) -> tuple[Path, ...]:
    """Return the folders above an env file as it was given."""
    # Not of the resolved path: a link in a checkout may lead out of it, and still comes from the checkout.
    return tuple(Path(name).expanduser().absolute().parents) if name.endswith(".toml") else ()


def available() -> list[tuple[str, Path, str]]:
    """Return every environment: name, file, and the file's first comment."""
    envs: dict[str, tuple[str, Path, str]] = {}
    for folder in _folders():
        for path in sorted(filter(Path.is_file, folder.glob("*.toml"))):
            # One unreadable file must not hide the others; the error comes when its environment is used.
            first = untrusted.text_if_any(path).partition("\n")[0]
            about = first.removeprefix("#").strip() if first.startswith("#") else ""
            name = name_of(path)
            if _is_name(name):
                envs.setdefault(name, (name, path, about))
    return list(envs.values())


def _folders() -> list[Path]:
    """Return the folders of env files."""
    space = workspace.default()
    # Never the current folder: a checkout must not name a compiler to run.
    return [user_settings_file().parent / "envs", configs.data_dir("envs"), space.worktrees, space.like]


def user_settings_file() -> Path:
    """Return the file of the user's own settings for every environment, in the platform's config folder."""
    override = os.environ.get("TRITONSMITH_CONFIG")
    return Path(override) if override else platformdirs.user_config_path("tritonsmith") / "settings.toml"


def explain(settings: Settings) -> Iterator[tuple[str, Any, str]]:
    """Yield every key with its value and origin, in the order of the schema."""
    origin = dict(settings.origin)
    for section, kind in _SECTIONS.items():
        for row in dataclasses.fields(kind):
            key = f"{section}.{_dashed(row.name)}"
            yield key, getattr(getattr(settings, section), row.name), origin.get(key, "default")


def _read(path: Path, *, heir: bool = False) -> dict[str, Any]:
    """Return a file's `section.key` to value; an heir's may have the key `inherits` above its sections."""
    try:
        table = untrusted.read_toml(path)
    except OSError as error:
        raise ConfigError("cannot read this file", where=path, why=error.strerror) from error
    except ValueError as error:
        raise ConfigError("this file is not valid TOML", where=path, why=str(error)) from error
    flat: dict[str, Any] = {}
    for section, keys in table.items():
        if heir and section == INHERITS:
            flat[INHERITS] = keys
            continue
        if not isinstance(keys, dict):
            hints = did_you_mean(section, _SECTIONS)
            raise ConfigError(f"key {section!r} is outside a section", where=path, hints=hints)
        if section not in _SECTIONS:
            hints = did_you_mean(section, _SECTIONS)
            raise ConfigError(f"unknown section [{section}]", where=path, hints=hints)
        flat |= {f"{section}.{key}": value for key, value in keys.items()}
    return flat


def _known(key: str, source: str) -> tuple[str, str, Any]:
    section, _, dashed = key.partition(".")
    hints = get_type_hints(_SECTIONS[section])
    names = {_dashed(name): name for name in hints}
    if dashed not in names:
        raise ConfigError(
            f"unknown key {dashed!r} in [{section}]", where=source, hints=did_you_mean(dashed, names)
        )
    return section, names[dashed], hints[names[dashed]]


def _checked(value: Any, hint: Any, key: str, source: str) -> Any:
    kind = get_origin(hint)
    if kind is Literal:
        choices = get_args(hint)
        if value in choices:
            return value
        error = UsageError if source == "command line" else ConfigError
        raise error(
            f"{key} cannot be {value!r}", where=source, hints=did_you_mean(str(value), filter(None, choices))
        )
    if kind is tuple:
        if isinstance(value, (list, tuple)) and all(isinstance(item, str) for item in value):
            _check_form(value, key, source)
            return tuple(value)
        raise ConfigError(f"{key} must be a list of strings, not {value!r}", where=source)
    assert not isinstance(hint, UnionType)  # noqa: S101 - the schema has none
    if hint is int and type(value) is int and value < 0:
        raise ConfigError(f"{key} cannot be {value}", where=source, hints=["0 means as many as fit"])
    # `type` and not `isinstance`: True is an int.
    if type(value) is not hint:
        raise ConfigError(f"{key} must be a {hint.__name__}, not {value!r}", where=source)
    if isinstance(value, str) and value:  # empty: not set
        _check_form((value,), key, source)
    return value


def _check_form(words: Iterable[str], key: str, source: str) -> None:
    """Check text for command lines, paths and CMake lists.

    Raises:
        ConfigError, UsageError: a word has another form.
    """
    # A target named `-f x.ninja` could make Ninja run anything, and a folder with a `;` is two to CMake.
    expected, form = FORMS[key]
    wrong = next((word for word in words if not form.fullmatch(word)), None)
    if wrong is not None:
        error = UsageError if source == "command line" else ConfigError
        hint = (
            "only names are allowed; no options, no lists"
            if expected == "a name"
            else "docs/environments.md lists the values of each key"
        )
        raise error(f"{key}: {wrong!r} is not {expected}", where=source, hints=[hint])


def _dashed(name: str) -> str:
    return name.strip("_").replace("_", "-")
