"""Each bad state of a Python environment, made on disk, and the good one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import only
from tests.unit.facts import fakes
from tests.unit.facts.installs import checkout, editable, install, put, python_of, site_of, triton
from tritonsmith.core.envs.settings import Settings, TritonSettings
from tritonsmith.doctor import python_env, python_triton, run
from tritonsmith.doctor.check import Check, DoctorContext, Finding

STATIC = tuple(check for check in run.checks_of(python_env, python_triton) if not check.deep)


@pytest.fixture
def env(subject: DoctorContext) -> Path:
    """An environment without a Triton."""
    prefix = subject.cwd / "an env"
    install(site_of(prefix), "packaging", "26.0", {"packaging/__init__.py": ""})
    return prefix


def see(subject: DoctorContext, prefix: Path, **changes: object) -> DoctorContext:
    """Let the doctor see what lies there now."""
    subject.packages = python_of(prefix, **changes)  # type: ignore[arg-type]
    return subject


def worst_of(check: Check, subject: DoctorContext) -> Finding:
    """The one that somebody should do something about."""
    (found,) = (finding for finding in check(subject) if finding.status != "ok")
    return found


@pytest.mark.parametrize("check", run.checks_of(python_env, python_triton), ids=lambda check: check.id)
def test_without_an_interpreter(subject: DoctorContext, check: Check) -> None:
    subject.interpreter = None
    subject.packages = None
    assert only(check, subject).status == "not applicable"


@pytest.mark.parametrize("check", STATIC, ids=lambda check: check.id)
def test_a_good_environment(subject: DoctorContext, env: Path, check: Check) -> None:
    subject.settings = Settings("wheel", triton=TritonSettings(wheel="newest"))
    triton(site_of(env))
    for found in check(see(subject, env, version="3.12.1")):
        assert found.status in ("ok", "not applicable", "note"), found
        assert not found.commands


@pytest.mark.parametrize(
    "check",
    [check for check in run.checks_of(python_env, python_triton) if check is not python_triton.compiles],
    ids=lambda check: check.id,
)
def test_a_program_that_is_no_python(subject: DoctorContext, check: Check) -> None:
    subject.python, subject.packages = Path("/bin/ls"), None
    found = only(check, subject)
    if check.id == "python.version":
        assert found.status == "error"
    elif check.id != "python.bindings":
        assert (found.status, found.seen) == ("not applicable", "/bin/ls is not a working Python")


# --- python.version


def test_a_python_that_does_not_run(subject: DoctorContext) -> None:
    subject.interpreter, subject.packages = subject.cwd / "python", None
    found = only(python_env.version, subject)
    assert (found.status, found.where) == ("error", str(subject.cwd / "python"))


@pytest.mark.parametrize(
    ("version", "status"),
    [("3.10.2", "ok"), ("3.14.0", "ok"), ("3.9.9", "error"), ("3.15.0", "warning")],
)
def test_pythons_version_against_the_checkout(
    subject: DoctorContext, env: Path, version: str, status: str
) -> None:
    fakes.checkout(subject.cwd, "3.5")
    found = only(python_env.version, see(subject, env, version=version))
    assert found.status == status
    assert found.seen == f"Python {version}; Triton 3.5.0 supports 3.10 to 3.14"
    assert bool(found.remedy) is (status != "ok")


@pytest.mark.parametrize(("version", "status"), [("3.11.0", "ok"), ("3.12.0", "warning"), ("3.5.0", "error")])
def test_pythons_version_against_the_installed_triton(
    subject: DoctorContext, env: Path, version: str, status: str
) -> None:
    triton(site_of(env), version="2.1.0")
    assert only(python_env.version, see(subject, env, version=version)).status == status


def test_a_wheel_is_not_held_against_the_checkout_around_it(subject: DoctorContext, env: Path) -> None:
    subject.settings = Settings("wheel", triton=TritonSettings(wheel="newest"))
    fakes.checkout(subject.cwd, "3.5")
    triton(site_of(env), version="2.1.0")
    found = only(python_env.version, see(subject, env, version="3.9.1"))
    assert (found.status, "Triton 2.1.0" in found.seen) == ("ok", True)
    assert only(python_env.spec, subject).status == "ok"


@pytest.mark.parametrize("version", ["", "1.0.0"])
def test_a_triton_that_nobody_knows_or_none(subject: DoctorContext, env: Path, version: str) -> None:
    if version:
        triton(site_of(env), version=version)
    assert only(python_env.version, see(subject, env)).status == "ok"


@pytest.mark.parametrize(("wheel", "status"), [("", "error"), ("newest", "warning")])
def test_headers_that_are_missing(subject: DoctorContext, env: Path, wheel: str, status: str) -> None:
    subject.settings = Settings("x", triton=TritonSettings(wheel=wheel))
    see(subject, env, version="3.11.7")
    subject.packages = replace(subject.packages, headers=False)  # type: ignore[type-var]
    found = worst_of(python_env.version, subject)
    assert found.status == status
    assert found.commands == ("apt install python3.11-dev",)


# --- python.owners


def test_two_owners(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    triton(site_of(env), "pytorch_triton_rocm", "2.0.2")
    found = worst_of(python_env.owners, see(subject, env))
    assert found.status == "error"
    assert "pytorch-triton-rocm 2.0.2 (RECORD) and triton 3.5.0 (RECORD)" in found.seen
    assert found.commands == ("invoke purge-wheels --env dev",)
    subject.interpreter = env / "bin" / "python"  # named, or active where `dev` has none
    named = f"invoke purge-wheels --python '{subject.interpreter}'"
    assert worst_of(python_env.owners, subject).commands == (named,)


def test_one_owner_hides_another(subject: DoctorContext, env: Path) -> None:
    base = subject.cwd / "base"
    triton(site_of(env))
    triton(site_of(base), version="3.4.0")
    one, other = python_of(env), python_of(base)
    subject.packages = replace(
        one, path=(*one.path, *other.path), distributions=(*one.distributions, *other.distributions)
    )
    found = worst_of(python_env.owners, subject)
    assert (found.status, found.seen) == ("warning", "triton 3.5.0 hides triton 3.4.0")


def test_what_nobody_owns(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    put(site_of(env), {"triton/_C/libtriton.cpython-311.so": "x" * 3_000_000, "~riton/x": ""})
    found = worst_of(python_env.owners, see(subject, env))
    assert found.status == "warning"
    assert "copied in: libtriton.cpython-311.so" in found.seen
    assert "~riton" in found.seen
    assert "2.9 MiB" in found.seen


def test_a_purge_that_was_killed(subject: DoctorContext, env: Path) -> None:
    put(site_of(env), {"~tritonsmith-purge/0": ""})
    found = worst_of(python_env.owners, see(subject, env))
    assert (found.status, found.commands) == ("error", ("invoke purge-wheels --env dev",))


# --- python.editable


@pytest.mark.parametrize("finder", [True, False])
def test_an_editable_install_of_the_checkout(subject: DoctorContext, env: Path, finder: bool) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "mine", "3.5")
    editable(site_of(env), subject.cwd, finder=finder)
    see(subject, env)
    if not finder:
        subject.packages = replace(  # type: ignore[type-var]
            subject.packages,
            path=(*subject.packages.path, subject.cwd / "python"),  # type: ignore[union-attr]
        )
    for check in (python_env.editable, python_env.spec):
        found = only(check, subject)
        assert found.status == "ok"
        assert str(subject.cwd) in found.seen


def test_an_editable_install_of_another_worktree(subject: DoctorContext, env: Path) -> None:
    other = checkout(subject.cwd / "other")
    editable(site_of(env), other, finder=True)
    subject.cwd = fakes.checkout(subject.cwd / "mine", "3.5")
    found = only(python_env.editable, see(subject, env))
    assert found.status == "warning"
    assert found.seen == f"triton 3.6.0 points to {other}; you work in {subject.cwd}"
    found = only(python_env.spec, subject)
    assert found.status == "warning"
    assert f"not the checkout {subject.cwd}" in found.seen
    assert found.commands == ("invoke install-triton --env dev",)


@pytest.mark.parametrize("finder", [True, False])
@pytest.mark.parametrize("what", ["", "python"])
def test_an_editable_install_whose_sources_are_gone(
    subject: DoctorContext, env: Path, finder: bool, what: str
) -> None:
    """The tree is gone, or the checkout is at a commit with another layout."""
    source = checkout(subject.cwd / "source")
    editable(site_of(env), source, finder=finder)
    (source / what).rename(subject.cwd / "moved")
    found = only(python_env.editable, see(subject, env))
    if what and not finder:
        assert found.status == "ok"  # a .pth file does not say which package it is for
        return
    assert found.status == "error"
    assert "which no longer exists" in found.seen
    assert len(found.commands) == 2


def test_an_editable_install_that_does_not_say_where(subject: DoctorContext, env: Path) -> None:
    install(site_of(env), "triton", "3.5.0", {"_triton_editable.pth": "import _triton_editable"})
    assert only(python_env.editable, see(subject, env)).status == "note"


# --- python.spec


def test_a_folder_without_init(subject: DoctorContext, env: Path) -> None:
    put(site_of(env), {"triton/stale.txt": ""})
    found = only(python_env.spec, see(subject, env))
    assert found.status == "error"
    assert "triton#1693" in found.affects


def test_a_clone_named_triton_in_the_current_folder(subject: DoctorContext, env: Path) -> None:
    editable(site_of(env), checkout(subject.cwd / "src"), finder=True)
    put(subject.cwd, {"triton/README.md": ""})
    found = worst_of(python_env.spec, see(subject, env))
    assert found.status == "warning"
    assert "a folder without __init__.py instead of" in found.seen
    assert found.where == str(subject.cwd / "triton")


def test_a_clone_in_the_current_folder_does_no_harm_to_a_wheel(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    put(subject.cwd, {"triton/README.md": ""})
    assert only(python_env.spec, see(subject, env)).status == "ok"


def test_another_package_in_the_current_folder(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    put(subject.cwd, {"triton/__init__.py": ""})
    found = worst_of(python_env.spec, see(subject, env))
    assert found.status == "warning"
    assert "finds another Triton instead of" in found.seen


def test_pythonpath(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    put(subject.cwd / "more", {"triton/__init__.py": ""})
    subject.environ = {"PYTHONPATH": f"nowhere:{subject.cwd / 'more'}"}
    found = worst_of(python_env.spec, see(subject, env))
    assert found.commands == ("unset PYTHONPATH",)
    assert found.where == str(subject.cwd / "more" / "triton")


def test_nothing_to_import(subject: DoctorContext, env: Path) -> None:
    assert only(python_env.spec, see(subject, env)).status == "not applicable"
