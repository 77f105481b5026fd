from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import COMMIT, VERSIONS, Programs, built, leave, venv
from tests.unit.facts import fakes
from tritonsmith.core.envs.schema import LlvmSettings, Settings, TritonSettings
from tritonsmith.core.errors import FactError
from tritonsmith.doctor.context import DoctorContext


def root_of(subject: DoctorContext) -> Path | None:
    return subject.checkout.root if subject.checkout else None


def named(subject: DoctorContext, source: str) -> DoctorContext:
    return replace(subject, settings=Settings("dev", triton=TritonSettings(source=source)))


# --- the checkout


def test_which_checkout_is_meant(subject: DoctorContext, home: Path) -> None:
    assert subject.checkout is None
    assert subject.unreadable is None
    clone = fakes.checkout(subject.space.sources / "triton-dev", "3.1")
    last = fakes.checkout(subject.cwd / "last", "3.3")
    here = fakes.checkout(subject.cwd / "here", "3.5")
    mine = fakes.checkout(home / "mine", "3.8")
    assert root_of(replace(subject)) == clone
    receipt = built(subject, last)
    assert root_of(replace(subject)) == last
    inside = replace(subject, cwd=here / "third_party" / "nvidia")
    assert root_of(inside) == here
    assert root_of(named(inside, "~/mine")) == mine
    assert root_of(named(inside, "https://github.com/triton-lang/triton")) == here
    assert root_of(named(subject, "git@github.com:triton-lang/triton")) == last
    (last / "setup.py").unlink(missing_ok=True)
    receipt.unlink()
    assert root_of(replace(subject)) == clone


def test_sources_that_were_deleted_since_they_were_built(subject: DoctorContext) -> None:
    built(subject, subject.cwd / "gone")
    assert subject.checkout is None
    assert subject.unreadable is None  # builds.triton says so


def test_a_checkout_that_cannot_be_read(subject: DoctorContext) -> None:
    found = named(subject, str(subject.cwd / "gone"))
    assert found.checkout is None
    assert isinstance(found.unreadable, FactError)
    assert "not a checkout of Triton" in str(found.unreadable)
    assert found.triton_version == ""


# --- the LLVM


def test_which_llvm_is_meant(subject: DoctorContext) -> None:
    assert (subject.llvm_prefix, subject.llvm) == (None, None)
    prefixes = {name: fakes.llvm(subject.cwd / name) for name in ("named", "prepared", "variable")}
    found = replace(subject, environ={"LLVM_SYSPATH": str(prefixes["variable"])})
    assert found.llvm_prefix == prefixes["variable"]
    leave(subject, "setup-mlir", prefix=prefixes["prepared"])
    assert found.llvm_prefix == prefixes["prepared"]
    found.settings = Settings("dev", llvm=LlvmSettings(dir=str(prefixes["named"])))
    assert found.llvm_prefix == prefixes["named"]
    assert found.llvm is not None
    assert found.llvm.prefix == prefixes["named"]


def test_an_llvm_in_the_home_folder_and_a_relative_one(subject: DoctorContext, home: Path) -> None:
    fakes.llvm(home / "llvm")
    fakes.llvm(subject.cwd / "build" / "llvm")
    for path, prefix in (("~/llvm", home / "llvm"), ("build/llvm", subject.cwd / "build" / "llvm")):
        found = replace(subject, environ={"LLVM_SYSPATH": path})
        assert found.llvm_prefix == prefix
        assert found.llvm is not None
        assert found.llvm.prefix == prefix


@pytest.mark.parametrize("path", ["", "/", "/gone"])
def test_an_llvm_that_is_none(subject: DoctorContext, path: str) -> None:
    found = replace(subject, environ={"LLVM_SYSPATH": path})
    assert found.llvm_prefix == (Path(path) if path else None)
    assert found.llvm is None


def test_a_receipt_without_a_prefix(subject: DoctorContext) -> None:
    leave(subject, "setup-mlir", commit=COMMIT)
    assert subject.llvm_prefix is None


# --- the Python


def test_which_interpreter_is_meant(subject: DoctorContext) -> None:
    assert (subject.interpreter, subject.packages) == (None, None)
    conda = venv(subject.cwd / "conda")
    found = replace(subject, environ={"CONDA_PREFIX": str(subject.cwd / "conda")})
    assert found.interpreter == conda
    active = venv(subject.cwd / "active")
    found = replace(found, environ={**found.environ, "VIRTUAL_ENV": str(subject.cwd / "active")})
    assert found.interpreter == active
    own = venv(subject.env.venv, lit="18.1.8")
    found = replace(found)
    assert found.interpreter == own
    assert found.packages is not None
    assert dict(found.packages.dists)["lit"] == "18.1.8"
    assert replace(found, python=conda).interpreter == conda


def test_the_tools_own_environment_is_not_meant(
    subject: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    active = venv(subject.cwd / "own").parents[1]
    monkeypatch.setattr("sys.prefix", str(active))
    assert replace(subject, environ={"VIRTUAL_ENV": str(active)}).interpreter is None


def test_an_environment_whose_interpreter_is_gone(subject: DoctorContext) -> None:
    python = venv(subject.env.venv)
    python.unlink()
    python.symlink_to("/gone/python3")
    assert subject.interpreter is None


@pytest.mark.parametrize("kind", ["folder", "text", "no Python"])
def test_an_interpreter_that_does_not_run(subject: DoctorContext, kind: str) -> None:
    python = subject.cwd / "python"
    if kind == "folder":
        python.mkdir()
    else:
        python.write_text("#!/bin/sh\necho hello\n" if kind == "no Python" else "hello")
        python.chmod(0o755 if kind == "no Python" else 0o644)
    found = replace(subject, python=python)
    assert (found.interpreter, found.packages, found.triton_version) == (python, None, "")


# --- the rest


def test_the_version_in_question(subject: DoctorContext) -> None:
    python = venv(subject.env.venv, triton="3.4.0")
    (info,) = python.parents[1].glob("lib/*/site-packages/triton-3.4.0.dist-info")
    (info / "RECORD").write_text("triton/__init__.py,,\n")
    assert subject.triton_version == "3.4.0"
    root = fakes.checkout(subject.cwd / "triton", "3.5")
    assert replace(subject, cwd=root).triton_version == "3.5.0"


def test_the_programs_are_those_of_the_config(subject: DoctorContext, programs: Programs) -> None:
    folder = programs(VERSIONS | {"clang++-17": "17.0.6"})
    (folder / "clang++").unlink()
    (folder / "ccache").unlink()
    found = subject.programs
    assert set(found) == set(VERSIONS)
    assert found["ccache"] is None
    clang = found["clang++"]
    assert clang is not None
    assert (clang.path, clang.version) == (folder / "clang++-17", "17.0.6")


def test_a_ccache_that_does_not_answer(subject: DoctorContext, programs: Programs) -> None:
    programs({"ccache": "4.8"})  # it prints its version, whatever it is asked
    found = replace(subject)
    assert found.programs["ccache"] is not None
    assert found.ccache is not None
    assert found.ccache.limit_gib == 0
    programs({"ccache": "\n[ $1 = --version ] && echo ccache version 4.8\n"})
    assert replace(subject).ccache is None
    programs({"ccache": "\nexit 1\n"})
    assert replace(subject).ccache is None


def test_each_fact_is_read_once(subject: DoctorContext) -> None:
    fakes.checkout(subject.cwd, "3.5")
    first = subject.checkout
    (subject.cwd / "setup.py").unlink()
    assert subject.checkout is first


def test_a_damaged_receipt_is_none(subject: DoctorContext) -> None:
    path = leave(subject, "setup-mlir", prefix="/x")
    assert subject.receipt("setup-mlir") is not None
    path.write_text("{")
    assert subject.receipt("setup-mlir") is None
