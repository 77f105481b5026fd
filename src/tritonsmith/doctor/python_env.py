"""Group `python`: the owners of the installed `triton`, and what an import finds; nothing is imported."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tritonsmith.core.command_line import command
from tritonsmith.core.errors import UsageError
from tritonsmith.core.plan.steps import uninstall
from tritonsmith.core.text import version_key
from tritonsmith.doctor.check import DoctorContext, Finding, check, error, note, ok, skipped, warning
from tritonsmith.doctor.python_triton import installing, sources
from tritonsmith.facts import checkout, installed_tritons, package_owners
from tritonsmith.facts.installed_tritons import ResolvedImport
from tritonsmith.facts.package_owners import Distribution
from tritonsmith.facts.python_env import PythonEnv

_MIB = float(1 << 20)


@check("python.version", "Python's version against this Triton's range, and its headers")
def version(subject: DoctorContext) -> Iterator[Finding]:
    """Check Python against Triton's supported range, and its headers."""
    # Every other check of the group does not apply then (`need_packages`), so this one must be an error.
    if subject.packages is None and subject.interpreter:
        yield error("this Python does not run", str(subject.interpreter), affects="nothing runs in it")
        return
    python = subject.need_packages()
    yield _in_range(python, subject)
    if not python.headers:
        building = not subject.settings.triton.wheel
        yield Finding(
            "error" if building else "warning",
            f"no Python.h in {python.include}",
            str(python.executable),
            affects="Triton cannot be built" if building else "Triton compiles its launchers at run time",
            remedy="install the headers of this Python (here: Debian's name)",
            commands=(f"apt install python{python.minor}-dev",),
        )


def _in_range(python: PythonEnv, subject: DoctorContext) -> Finding:
    tree = sources(subject)
    triton = tree.version if tree else subject.installed_triton
    try:
        oldest, newest = tree.python if tree else checkout.triton_release(triton).python
    # No Triton, or one that is older than the table.
    except UsageError:
        return ok(f"Python {python.version}; no Triton to compare with", python.executable)
    text = f"Python {python.version}; Triton {triton} supports {oldest} to {newest}"
    minor = version_key(python.minor)
    if version_key(oldest) <= minor <= version_key(newest):
        return ok(text, python.executable)
    old = minor < version_key(oldest)
    return Finding(
        "error" if old else "warning",
        text,
        str(python.executable),
        affects="Triton neither builds nor imports" if old else "there is no wheel, and builds are untested",
        remedy=f'choose another interpreter: [python] interpreter = "{newest}" in the env file',
    )


@check("python.owners", "installed distributions that own triton/")
def owners(subject: DoctorContext) -> Iterator[Finding]:
    """Find the owners of triton/: several overwrite each other's files."""
    python = subject.need_packages()
    owned = package_owners.owners(python.distributions)
    # Per site folder: two owners in different folders hide each other, two in one mix their files.
    # `distributions` are in the order of the path, so those of one folder are together, as `groupby` needs.
    for site, group in groupby(owned, key=lambda distribution: distribution.site):
        yield from _shared(tuple(group), site, subject)
    sites = dict.fromkeys(distribution.site for distribution in owned)
    if len(sites) > 1:
        first = owned[0]
        yield warning(
            f"{first.title} hides {', '.join(other.title for other in owned if other.site != first.site)}",
            ", ".join(map(str, sites)),
            affects="pip and torch may see one, and an import loads the other",
        )
    alone = [finding for site in python.sites for finding in _orphaned(site, python, subject)]
    yield from alone
    if not owned and not alone:
        yield skipped(f"no Triton installed in {python.prefix}")


def _shared(owned: tuple[Distribution, ...], site: Path, subject: DoctorContext) -> Iterator[Finding]:
    names = " and ".join(f"{distribution.title} ({distribution.owns})" for distribution in owned)
    if len(owned) == 1:
        yield ok(f"{names} alone", site)
        return
    yield error(
        f"{len(owned)} distributions own triton/: {names}",
        str(site),
        affects="their files are mixed, and uninstalling one breaks the other (triton#3359, triton#5058)",
        remedy="remove all of them, then install the one you want",
        commands=_purge(subject),
    )


def _orphaned(site: Path, python: PythonEnv, subject: DoctorContext) -> Iterator[Finding]:
    # The folder into which a purge moves the files; it goes when the purge ends.
    if os.path.lexists(site / uninstall.NAME):
        yield error(
            "a purge was interrupted",
            str(site / uninstall.NAME),
            affects="files of triton/ are missing",
            remedy="run the purge again: it restores the files, or continues",
            commands=_purge(subject),
        )
    alone = installed_tritons.orphans(
        site, [distribution for distribution in python.distributions if distribution.site == site]
    )
    if alone.any:
        yield warning(
            f"files without an owner: {alone.words} ({alone.size / _MIB:.1f} MiB)",
            str(site),
            affects="an import may load them, and no uninstall removes them",
            remedy="the next purge removes them",
            commands=_purge(subject),
        )


@check("python.editable", "where editable installs of Triton point")
def editable(subject: DoctorContext) -> Iterator[Finding]:
    """Check editable installs, whose source tree may be missing, or not the one you work in."""
    python = subject.need_packages()
    installs = [
        distribution for distribution in package_owners.owners(python.distributions) if distribution.editable
    ]
    for distribution in installs:
        yield _points_to(distribution, subject)
    if not installs:
        yield skipped("no editable install of Triton")


def _points_to(distribution: Distribution, subject: DoctorContext) -> Finding:
    assert distribution.editable is not None  # noqa: S101 - for the type checker
    project, package, hooks = (
        distribution.editable.project,
        distribution.editable.package,
        distribution.editable.hooks,
    )
    target = project or package
    where = str(hooks[0]) if hooks else str(distribution.info)
    if target is None:
        return note(f"{distribution.title} is editable, but does not record its source tree", where)
    gone = next((folder for folder in (project, package) if folder and not folder.exists()), None)
    if gone:
        return error(
            f"{distribution.title} points to {gone}, which no longer exists",
            where,
            affects="import triton fails, or finds another Triton",
            remedy="reinstall from where the sources are now, or uninstall",
            commands=(*installing(subject), *_purge(subject)),
        )
    tree = sources(subject)
    # Both with links followed: otherwise a checkout that is reached by two paths counts as two.
    if tree and not target.resolve().is_relative_to(tree.root.resolve()):
        return warning(
            f"{distribution.title} points to {target}; you work in {tree.root}",
            where,
            affects="what you edit and build here is not what runs",
            remedy="install this checkout, or check the environment of the other one",
            commands=installing(subject),
        )
    return ok(f"{distribution.title} points to {target}", where)


@check("python.spec", "what `import triton` finds")
def spec(subject: DoctorContext) -> Iterator[Finding]:
    """Resolve `import triton`: `sys.path`, `.pth` files and finders decide; the first folder wins."""
    python = subject.need_packages()
    finders = installed_tritons.import_finders(python.sites, python.distributions)
    plain = installed_tritons.resolve_import(python.path, finders)
    yield _resolved(plain, subject)
    named = subject.environ.get("PYTHONPATH", "").split(os.pathsep)
    # `python.path` was read with -I, so PYTHONPATH is not in it; Python puts that before all site folders.
    variable = tuple(subject.cwd / folder for folder in named if folder)
    with_variable = installed_tritons.resolve_import((*variable, *python.path), finders)
    if with_variable and with_variable != plain:
        yield _shadow(with_variable, plain, "PYTHONPATH contains its parent", "unset PYTHONPATH")
    # `python FILE` does not search the current folder, `python -c` and `-m` do: hence three answers.
    here = installed_tritons.resolve_import((subject.cwd, *variable, *python.path), finders)
    if here and here != with_variable:
        yield _shadow(
            here,
            with_variable,
            "python -c and -m search the current folder first",
            "change to another folder",
        )


def _resolved(resolved: ResolvedImport | None, subject: DoctorContext) -> Finding:
    tree = sources(subject)
    if resolved is None:
        return skipped("import triton finds nothing")
    # Such a folder wins over an editable install: the finders of those come last on `sys.meta_path`.
    if resolved.namespace:
        return error(
            f"import triton finds a folder without __init__.py: {resolved.folder}",
            str(resolved.by),
            affects="the import succeeds, but the module has no jit (triton#1693, triton#2099)",
            remedy="rename that folder, or remove its parent from the path",
        )
    if tree and not resolved.folder.resolve().is_relative_to(tree.root.resolve()):
        return warning(
            f"import triton finds {resolved.folder}, not the checkout {tree.root}",
            str(resolved.by),
            affects="what you edit and build is not what runs",
            remedy="install the checkout into this environment",
            commands=installing(subject),
        )
    return ok(f"import triton finds {resolved.folder}", resolved.by)


def _shadow(resolved: ResolvedImport, otherwise: ResolvedImport | None, why: str, command: str) -> Finding:
    kind = "a folder without __init__.py" if resolved.namespace else "another Triton"
    instead = f" instead of {otherwise.folder}" if otherwise else ""
    return warning(
        f"import triton finds {kind}{instead}: {why}",
        str(resolved.folder),
        affects="an empty module without jit (triton#1693)" if resolved.namespace else "another Triton runs",
        remedy="rename that folder, or run from another one",
        commands=(command,),
    )


def _purge(subject: DoctorContext) -> tuple[str, ...]:
    python = subject.interpreter
    other = python and python != subject.env.python  # given by the user, or active
    return (command("purge-wheels", python=python) if other else command("purge-wheels", env=subject.named),)
