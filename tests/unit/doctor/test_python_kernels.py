"""`triton_kernels` beside a Triton, in every way that it may be installed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import only
from tests.unit.doctor.test_python_env import see
from tests.unit.facts.installs import install, put, site_of, triton
from tritonsmith.doctor import python_kernels
from tritonsmith.doctor.context import DoctorContext

FITS = "import triton\n@triton.jit\ndef f(): pass\n"
AHEAD = "import triton\nfrom triton.tools.ragged_tma import load_ragged\n"


@pytest.fixture
def env(subject: DoctorContext) -> Path:
    """An environment with a Triton that has `jit`."""
    prefix = subject.cwd / "an env"
    triton(site_of(prefix))
    put(site_of(prefix), {"triton/__init__.py": "__version__ = '3.5.0'\ndef jit(f): return f\n"})
    return prefix


def kernels(prefix: Path, text: str, name: str = "triton_kernels", **more: str) -> None:
    files = {"triton_kernels/__init__.py": "", "triton_kernels/matmul.py": text}
    install(site_of(prefix), name, "1.0.0", files, more=more)


def test_without_it(subject: DoctorContext, env: Path) -> None:
    found = only(python_kernels.triton_kernels, see(subject, env))
    assert (found.status, found.seen) == ("not applicable", "no triton_kernels installed")


def test_without_a_triton(subject: DoctorContext) -> None:
    kernels(subject.cwd / "bare", FITS)
    assert only(python_kernels.triton_kernels, see(subject, subject.cwd / "bare")).status == "not applicable"


def test_one_that_fits(subject: DoctorContext, env: Path) -> None:
    kernels(env, FITS)
    found = only(python_kernels.triton_kernels, see(subject, env))
    assert (found.status, found.seen) == ("ok", "triton_kernels 1.0.0 uses only names that Triton 3.5.0 has")


def test_one_that_does_not(subject: DoctorContext, env: Path) -> None:
    url = {
        "url": "https://x",
        "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "0" * 40},
    }
    kernels(env, AHEAD, **{"direct_url.json": json.dumps(url)})
    found = only(python_kernels.triton_kernels, see(subject, env))
    assert found.status == "error"
    assert found.seen == "triton_kernels 1.0.0 (main) uses what Triton 3.5.0 lacks: triton.tools"
    assert "matmul.py:2" in found.affects
    (pip,) = found.commands
    assert "triton@v3.5.0#subdirectory=python/triton_kernels" in pip


def test_a_call_that_would_fail_is_a_warning(subject: DoctorContext, env: Path) -> None:
    kernels(env, "import triton\ndef f(): triton.gone()\n")
    found = only(python_kernels.triton_kernels, see(subject, env))
    assert (found.status, found.affects) == ("warning", "these calls fail: matmul.py:2 f")


def test_that_of_another_package_is_named_after_it(subject: DoctorContext, env: Path) -> None:
    kernels(env, AHEAD, "sgl_kernel")
    found = only(python_kernels.triton_kernels, see(subject, env))
    assert found.seen.startswith("triton_kernels of sgl-kernel 1.0.0 uses")


def test_vllms_own(subject: DoctorContext, env: Path) -> None:
    place = "vllm/third_party/triton_kernels"
    put(site_of(env), {f"{place}/__init__.py": "", f"{place}/matmul.py": AHEAD})
    kernels(env, FITS)
    fine, wrong = python_kernels.triton_kernels(see(subject, env))
    assert (fine.status, wrong.status) == ("ok", "error")
    assert wrong.seen.startswith("triton_kernels in vllm uses")
    assert wrong.commands == ("invoke pins --package vllm",)


def test_an_editable_one(subject: DoctorContext, env: Path) -> None:
    source = subject.cwd / "src" / "triton_kernels"
    put(source, {"__init__.py": AHEAD})
    hook = "__editable___triton_kernels_1_0_0_finder.py"
    put(
        site_of(env),
        {hook: f"MAPPING: dict[str, str] = {{'triton_kernels': {str(source)!r}}}\nNAMESPACES = {{}}\n"},
    )
    found = only(python_kernels.triton_kernels, see(subject, env))
    assert (found.status, found.where) == ("error", str(source))


def test_beside_a_triton_that_has_none(subject: DoctorContext) -> None:
    old = subject.cwd / "old"
    triton(site_of(old), version="3.3.1")
    kernels(old, AHEAD)
    found = only(python_kernels.triton_kernels, see(subject, old))
    assert found.remedy == "remove it: triton_kernels needs Triton 3.4 or later"
    assert not found.commands
