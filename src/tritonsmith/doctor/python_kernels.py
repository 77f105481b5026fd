"""Group `python`: compatibility of `triton_kernels` with the Triton beside it; nothing is imported."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tritonsmith.core import untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.versions import version_key
from tritonsmith.doctor.check import check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, ok
from tritonsmith.doctor.python_triton import package_of
from tritonsmith.facts import distributions, editables, libtriton
from tritonsmith.facts.python_env import PythonEnv

if TYPE_CHECKING:
    from tritonsmith.facts.missing_names import MissingName

_NAME = "triton_kernels"
_VENDORED = ("vllm/third_party",)  # vllm/utils/import_utils.py: if `import triton_kernels` finds nothing
_FIRST = (3, 4)  # the first release of Triton with python/triton_kernels in its tree
_SHOWN = 3


@check("python.triton-kernels", "triton_kernels against the Triton beside it")
def triton_kernels(subject: DoctorContext) -> Iterator[Finding]:
    """Compare each triton_kernels with the Triton beside it."""
    # It is written for the Triton of its own commit, requires none, and its version is always 1.0.0.
    python = subject.need_packages()
    folders = tuple(_installed(python))
    if not folders:
        raise NotApplicableError(f"no {_NAME} installed")
    triton = package_of(python)
    if triton is None or not libtriton.find(triton):
        raise NotApplicableError(f"{_NAME} is installed, and no whole Triton")
    for folder in folders:
        yield _fits(folder, triton, python, subject)


def _installed(python: PythonEnv) -> Iterator[Path]:
    """Yield copies that an import may find: the first on the path or of a finder, and of each vendor."""
    finders = (
        hook for site in python.sites for hook in sorted(site.glob(f"__editable___{_NAME}_*_finder.py"))
    )
    mapped = (editables.mapping(hook).get(_NAME) for hook in finders)
    own = (*(entry / _NAME for entry in python.path), *filter(None, mapped))
    for places in (own, *(tuple(entry / folder / _NAME for entry in python.path) for folder in _VENDORED)):
        if there := next((place for place in places if untrusted.is_file(place / "__init__.py")), None):
            yield there


def _fits(folder: Path, triton: Path, python: PythonEnv, subject: DoctorContext) -> Finding:
    from tritonsmith.facts import missing_names  # noqa: PLC0415 - few environments have triton_kernels

    version = subject.installed_triton
    missing = missing_names.find(folder, triton)
    title = _title(folder, python)
    if not missing:
        return ok(f"{title} uses only names that Triton {version} has", folder)
    failing = tuple(use for use in missing if not use.function)
    names = ", ".join(dict.fromkeys(use.name for use in failing or missing))
    remedy, commands = _remedy(folder, python, version)
    return Finding(
        "error" if failing else "warning",
        f"{title} uses what Triton {version} lacks: {names}",
        str(folder),
        affects=f"importing these fails: {_places(failing)} (triton#7818, vllm#39664)"
        if failing
        else f"these calls fail: {_places(missing)}",
        remedy=remedy,
        commands=commands,
    )


def _title(folder: Path, python: PythonEnv) -> str:
    """Return a title: `triton_kernels of sgl-kernel 0.3.5`, `triton_kernels 1.0.0 (v3.5.0)`."""
    if folder.parent.name == "third_party":
        return f"{_NAME} in {folder.parent.parent.name}"
    for distribution in python.distributions:
        record = (
            editables.read_text(distribution.info / "RECORD") if distribution.site == folder.parent else ""
        )
        if distribution.name == distributions.normalised(_NAME):
            return f"{_NAME} {distribution.version}{_origin(distribution.info)}"
        if f"\n{_NAME}/" in f"\n{record}":
            return f"{_NAME} of {distribution.title}"
    return _NAME


def _origin(info: Path) -> str:
    """Return the tag or commit that pip installed it from."""
    try:
        source = untrusted.read_json(info / "direct_url.json")["vcs_info"]
        name = source.get("requested_revision") or source["commit_id"][:12]
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return ""
    return f" ({name})"


def _places(missing: tuple[MissingName, ...]) -> str:
    shown = [f"{use.file}:{use.line}" + (f" {use.function}" if use.function else "") for use in missing]
    more = len(shown) - _SHOWN
    return ", ".join(shown[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def _remedy(folder: Path, python: PythonEnv, version: str) -> tuple[str, tuple[str, ...]]:
    """Return the remedy in words, and as commands."""
    if folder.parent.name == "third_party":
        package = folder.parent.parent.name
        advice = f"install the Triton that this {package} requires, or a {package} for this Triton"
        return advice, (command("pins", package=package),)
    if version_key(version)[:2] < _FIRST:
        return f"remove it: {_NAME} needs Triton 3.4 or later", ()
    tag = version.partition("+")[0]
    url = f"git+https://github.com/triton-lang/triton@v{tag}#subdirectory=python/{_NAME}"
    pip = (str(python.executable), "-m", "pip", "install", "--no-deps", "--force-reinstall")
    advice = "install that of the same release, or, for a Triton of your own, of the same checkout"
    return advice, (shlex.join((*pip, f"{_NAME} @ {url}")),)
