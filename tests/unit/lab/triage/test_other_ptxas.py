"""Another ptxas: its own and the other are scripts that say which they are, and Triton is a function here."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import Plan
from tritonsmith.lab.journal import Observation, Verdict
from tritonsmith.lab.triage import other_tools
from tritonsmith.lab.triage import variant as variants
from tritonsmith.lab.triage.other_tools import OwnPtxas
from tritonsmith.lab.triage.variant import TriageChange
from tritonsmith.wheels import ptxas
from tritonsmith.wheels.ptxas import RegistryPtxas

SHOWS, GONE = Observation(Verdict.BAD, "it fails"), Observation(Verdict.GOOD, "it compiles")
Look = Callable[[TriageChange], Observation]


def by_other(variant: TriageChange) -> Observation:
    """The symptom is that of its own ptxas."""
    return GONE if variant.variables else SHOWS


def by_version(variant: TriageChange) -> Observation:
    """The symptom is that of PTX 8.8."""
    return GONE if variant.options["ptx_version"] < 88 else SHOWS


@pytest.fixture
def tested(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Observation]:
    """A Triton whose own ptxas is 12.9.86, under another one."""

    def program(path: Path, version: str, ptx: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        says = f"line 1; fatal   : Unsupported .version 99.9; current version is '{ptx}'"
        known = f'[ "$1" = --version ] && echo "release, V{version}" && exit'
        path.write_text(f'#!/bin/sh\n{known}\necho "{says}" >&2; exit 1\n', encoding="utf-8")
        path.chmod(0o755)
        return path

    own = program(tmp_path / "triton/backends/nvidia/bin/ptxas", "12.9.86", "8.8")
    program(own.with_name("ptxas-blackwell"), "13.3.33", "9.3")
    ptx = {"13": "9.5", "12": "8.7"}

    def prepare(version: str, *_: object) -> RegistryPtxas:
        path = program(tmp_path / version / "ptxas", version, ptx[version[:2]])
        return RegistryPtxas(version, path, "", Plan("there"))

    monkeypatch.setattr(ptxas, "prepare", prepare)
    monkeypatch.delenv("TRITON_PTXAS_PATH", raising=False)

    def test(
        name: str,
        look: Look = by_other,
        gpus: tuple[str, ...] = ("9.0",),
        asked: int | None = None,
        log: str = "",
        triton: str = "3.8.0",
    ) -> Observation:
        [change] = [row.change for row in variants.every() if row.name == name]
        facts = OwnPtxas(tmp_path / "python", tmp_path / "triton", frozenset(gpus), asked, tmp_path)
        return other_tools.test_by_ptxas(change, triton, facts, look, lambda _name: log)

    return test


def test_the_same_ptx_by_a_newer_one(tested: Callable[..., Observation]) -> None:
    seen = tested("a newer ptxas")
    assert seen.verdict is Verdict.GOOD
    assert seen.swapped == ("12.9.86", ptxas.known()[-1])
    assert seen.figures == f"it compiles, PTX 8.8 by ptxas {ptxas.known()[-1]} instead of 12.9.86"


def test_an_older_one_is_that_of_the_release_before(tested: Callable[..., Observation]) -> None:
    seen = tested("an older ptxas")
    assert (seen.verdict, seen.swapped) == (Verdict.GOOD, ("12.9.86", "12.8.93"))
    assert "PTX 8.7 by ptxas 12.8.93" in seen.figures


def test_what_an_older_ptx_makes_right_is_not_ptxas(tested: Callable[..., Observation]) -> None:
    seen = tested("an older ptxas", by_version)
    assert seen.verdict is Verdict.SKIP
    assert seen.why == "with its own ptxas, this version of PTX does not show it either"


@pytest.mark.parametrize(
    "said",
    [
        "ptxas k.ptx, line 5; fatal   : Unsupported .version 8.8; current version is '8.7'",
        "line 9; error   : Feature 'x' requires PTX ISA .version 8.8 or later",
        "ptxas fatal   : Value 'sm_103a' is not defined for option 'gpu-name'",
        "ptxas fatal   : Unknown option '--regAllocOptLevel'",
    ],
)
@pytest.mark.parametrize("seen", [SHOWS, Observation(Verdict.OTHER, "another"), Observation(Verdict.SKIP)])
def test_a_refusal_is_no_test(tested: Callable[..., Observation], said: str, seen: Observation) -> None:
    found = tested("an older ptxas", lambda _variant: seen, log=f"Internal error\n{said}\n")
    assert found.verdict is Verdict.SKIP
    assert found.why.startswith("ptxas 12.8.93: ")
    assert found.why.endswith(said.partition("Unsupported")[2] or said.partition(": ")[2] or said)


def test_what_stays_stays(tested: Callable[..., Observation]) -> None:
    seen = tested("a newer ptxas", lambda _variant: SHOWS, log="ptxas fatal   : Memory allocation failure")
    assert seen.verdict is Verdict.BAD
    assert "instead of 12.9.86" in seen.figures


def test_what_cannot_be_tested(
    tested: Callable[..., Observation], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "asks for PTX 8.8, but one of the two takes only 8.7" in tested("an older ptxas", asked=88).why
    assert "several ptxas; --target with one GPU" in tested("a newer ptxas", gpus=("9.0", "10.0")).why
    assert tested("a newer ptxas", gpus=()).why == "nothing was compiled to PTX"
    assert "no older ptxas than 12.9.86 is known" in tested("an older ptxas", triton="3.0.0").why
    assert "no newer ptxas than 12.9.86 is known" in tested("a newer ptxas", triton="3.4.0").why, (
        "CUDA 12 only"
    )
    monkeypatch.setenv("TRITON_PTXAS_PATH", str(tmp_path / "nowhere"))
    assert tested("a newer ptxas").why == f"its own ptxas is not at {tmp_path / 'nowhere'}"


def test_without_a_package_index_it_says_how_to_get_it(
    tested: Callable[..., Observation], monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(*_: object, **_more: object) -> None:
        raise StepError("pip failed")

    monkeypatch.setattr(ptxas, "install", install)
    seen = tested("an older ptxas")
    assert seen.verdict is Verdict.SKIP
    assert seen.why.startswith("no ptxas 12.8.93 is available: pip failed; ")
    assert seen.why.endswith("up --ptxas 12.8.93 gets it")


@pytest.mark.parametrize(
    ("triton", "capability", "own", "before"),
    [
        ("3.9.0", "9.0", "13.4.59", "12.9.86"),  # Hopper had the other one of the two
        ("3.9.0", "10.0", "13.4.59", "13.3.33"),
        ("3.6.0", "9.0", "12.8.93", "12.4.99"),
        ("3.6.0", "10.0", "12.9.86", "12.8.93"),
        ("3.2.0", "9.0", "12.4.99", ""),
        ("3.8.0", "9.0", "12.9.86", "12.8.93"),  # of the wheels 3.7.0 and 3.7.1
    ],
)
def test_what_the_release_before_shipped(triton: str, capability: str, own: str, before: str) -> None:
    assert ptxas.shipped_before(triton, capability, own) == before
