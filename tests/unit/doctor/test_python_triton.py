"""The installed Triton against torch and LLVM, and whether it runs."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import only, venv
from tests.unit.doctor.test_python_env import see
from tests.unit.facts import elf, fakes
from tests.unit.facts.installs import checkout, editable, install, put, python_of, site_of, triton
from tritonsmith.core.envs.settings import Settings, TritonSettings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.doctor import python_triton
from tritonsmith.doctor import python_triton as deep
from tritonsmith.doctor.check import DoctorContext
from tritonsmith.facts import python_env

WHEEL_371 = "1f126a6dea50d185c0781743a667390037ae88bd"  # configs/pytorch-pins.toml


@pytest.fixture
def env(subject: DoctorContext) -> Path:
    return subject.cwd / "an env"


def torch(prefix: Path, version: str, requires: str = "") -> None:
    text = f"Name: torch\nVersion: {version}\n" + (f"Requires-Dist: {requires}\n" if requires else "")
    install(site_of(prefix), "torch", version, {"torch/__init__.py": ""}, more={"METADATA": text})


# --- python.torch


def test_neither_torch_nor_triton(subject: DoctorContext, env: Path) -> None:
    assert only(python_triton.torch, see(subject, env)).status == "not applicable"


def test_triton_without_torch(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    found = only(python_triton.torch, see(subject, env))
    assert (found.status, found.seen) == ("note", "triton 3.5.0 without torch")


@pytest.mark.parametrize(("requires", "advice"), [("triton==3.7.1", True), ("", False)])
def test_torch_without_triton(subject: DoctorContext, env: Path, requires: str, advice: bool) -> None:
    torch(env, "2.13.0", requires)
    found = only(python_triton.torch, see(subject, env))
    assert found.status == "note"
    assert found.seen.startswith(f"torch 2.13.0 requires {requires or 'no Triton'}")
    assert found.commands == (("invoke env-triton --env dev",) if advice else ())
    subject.python = env / "bin" / "python"
    pip = f"'{subject.python}' -m pip install triton==3.7.1"
    assert only(python_triton.torch, subject).commands == ((pip,) if advice else ())


@pytest.mark.parametrize(
    ("name", "version", "status"),
    [
        ("triton", "3.7.1", "ok"),
        ("triton", "3.7.0", "warning"),
        ("triton", "3.7.1+git5d6048aa", "ok"),
        ("triton", "3.7.1+git0badc0de", "warning"),
        ("pytorch_triton_rocm", "3.7.1", "warning"),
    ],
)
def test_what_torch_requires(subject: DoctorContext, env: Path, name: str, version: str, status: str) -> None:
    torch(env, "2.13.0", "triton==3.7.1")
    triton(site_of(env), name, version)
    found = only(python_triton.torch, see(subject, env))
    assert found.status == status, found.seen
    assert "triton==3.7.1" in found.seen
    assert bool(found.commands) is (status == "warning")


def test_a_triton_of_ones_own_beside_torch_is_a_note(subject: DoctorContext, env: Path) -> None:
    torch(env, "2.13.0", "triton==3.7.1")
    editable(site_of(env), checkout(subject.cwd / "src"), version="3.9.0", finder=True)
    found = only(python_triton.torch, see(subject, env))
    assert (found.status, found.commands) == ("note", ())


def test_a_torch_that_no_table_knows(subject: DoctorContext, env: Path) -> None:
    """It gets what it requires; whether that is its pin, nobody can tell."""
    torch(env, "9.0.0.dev20991231", "triton==9.0.0+git0badc0de")
    triton(site_of(env), version="9.0.0+git0badc0de")
    found = only(python_triton.torch, see(subject, env))
    assert (found.status, found.commands) == ("note", ())


# --- python.llvm-revision


def with_library(
    subject: DoctorContext, prefix: Path, llvm: str, name: str = "libtriton.so", machine: int = elf.X86_64
) -> DoctorContext:
    library = site_of(prefix) / "triton" / "_C" / name
    (library.parent / "libtriton.so").unlink()
    elf.libtriton(library, llvm, machine)
    return see(subject, prefix, version="3.11.7")


def test_the_llvm_of_the_published_wheel(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env), version="3.7.1")
    found = only(python_triton.llvm_revision, with_library(subject, env, f"23.0.0git {WHEEL_371}"))
    assert (found.status, found.seen) == (
        "ok",
        f"LLVM 23.0.0git, {WHEEL_371}, that of the published wheel 3.7.1",
    )


@pytest.mark.parametrize(
    ("version", "llvm", "status", "says"),
    [
        ("3.7.1", f"23.0.0git {'a' * 40}", "warning", f"the published wheel 3.7.1 has {WHEEL_371[:12]}"),
        ("3.1.0", "19.0.0git", "ok", "commit not recorded"),
        ("3.1.0", "", "note", "cannot read which LLVM"),
    ],
)
def test_an_llvm_that_is_another_or_did_not_record_its_commit(
    subject: DoctorContext, env: Path, version: str, llvm: str, status: str, says: str
) -> None:
    triton(site_of(env), version=version)
    found = only(python_triton.llvm_revision, with_library(subject, env, llvm))
    assert found.status == status
    assert says in found.seen


@pytest.mark.parametrize(("commit", "status"), [(fakes.HASH, "ok"), ("a" * 40, "warning")])
def test_the_llvm_of_an_editable_install_against_the_checkouts_pin(
    subject: DoctorContext, env: Path, commit: str, status: str
) -> None:
    subject.cwd = fakes.checkout(subject.cwd / "mine", "3.5")
    editable(site_of(env), subject.cwd, finder=True)
    elf.libtriton(subject.cwd / "python" / "triton" / "_C" / "libtriton.so", f"22.0.0git {commit}")
    found = only(python_triton.llvm_revision, see(subject, env, version="3.11.7"))
    assert found.status == status
    assert ("the checkout's pin is 10dc3a8e916d" in found.seen) is (status == "warning")


def test_a_library_for_another_machine(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    found = only(python_triton.llvm_revision, with_library(subject, env, "19.1.7", machine=elf.AARCH64))
    assert (found.status, found.seen) == ("error", "it is built for aarch64")


def test_a_library_for_another_python(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    name = "libtriton.cpython-312-x86_64-linux-gnu.so"
    found = only(python_triton.llvm_revision, with_library(subject, env, "19.1.7", name))
    assert (found.status, found.seen) == ("error", "it is built for cpython-312, not cpython-311")
    found = only(python_triton.llvm_revision, see(subject, env, version="3.12.0"))
    assert found.status == "ok"


@pytest.mark.parametrize(
    ("tag", "soabi", "says"),
    [
        ("cpython-314", "cpython-314t", "it is built for cpython-314, not cpython-314t"),
        ("cpython-314t", "cpython-314", "it is built for cpython-314t, not cpython-314"),
        ("abi3", "cpython-314t", "it is built for abi3, not cpython-314t"),
        ("cpython-314t", "cpython-314t", ""),
        ("abi3", "cpython-314", ""),
    ],
)
def test_free_threading_has_an_abi_of_its_own(
    subject: DoctorContext, env: Path, tag: str, soabi: str, says: str
) -> None:
    """A Python 3.14t loads no extension module of 3.14, nor one of the stable ABI."""
    triton(site_of(env))
    ending = "-x86_64-linux-gnu" if tag.startswith("cpython") else ""
    with_library(subject, env, "19.1.7", f"libtriton.{tag}{ending}.so")
    seen = see(subject, env, version="3.14.0", soabi=f"{soabi}-x86_64-linux-gnu")
    found = only(python_triton.llvm_revision, seen)
    assert (found.status, found.seen) == ("error", says) if says else found.status == "ok"


def test_no_library(subject: DoctorContext, env: Path) -> None:
    install(site_of(env), "triton", "3.5.0", {"triton/__init__.py": ""})
    found = only(python_triton.llvm_revision, see(subject, env))
    assert (found.status, found.seen) == ("not applicable", f"no libtriton.so in {site_of(env) / 'triton'}")


# --- python.packages


def requiring(site: Path, name: str, version: str, *lines: str) -> None:
    text = f"Name: {name}\nVersion: {version}\n" + "".join(f"Requires-Dist: {line}\n" for line in lines)
    install(site, name, version, more={"METADATA": text})


def test_a_package_for_another_torch_is_a_warning(subject: DoctorContext, env: Path) -> None:
    site = site_of(env)
    install(site, "torch", "2.9.1+cpu", {"torch/__init__.py": ""})
    requiring(site, "vllm", "0.11.0", "torch==2.8.0", "triton>=3.9; extra == 'new'")
    requiring(site, "fla-core", "0.6.0", "torch>=2.7", "einops")
    unmet, met = python_triton.packages(see(subject, env))
    assert (unmet.status, met.status) == ("warning", "ok")
    assert unmet.seen == "vllm 0.11.0 requires torch==2.8.0; torch 2.9.1+cpu is installed"
    assert unmet.commands == ("invoke pins --package vllm",)
    assert met.seen == "fla-core 0.6.0: torch>=2.7"


@pytest.mark.parametrize(("version", "status"), [("2.9.1", "warning"), ("2.8.0+cu128", "ok")])
def test_what_a_package_requires_is_a_release_and_all_that_is_reported_if_it_does_not_fit(
    subject: DoctorContext, env: Path, version: str, status: str
) -> None:
    install(site_of(env), "torch", version, {"torch/__init__.py": ""})
    requiring(site_of(env), "vllm", "0.11.0", "torch==2.8.0")
    assert only(python_triton.packages, see(subject, env)).status == status


def test_without_a_requirement_of_torch_nothing_is_compared(subject: DoctorContext, env: Path) -> None:
    install(site_of(env), "einops", "1.0")
    assert only(python_triton.packages, see(subject, env)).status == "not applicable"


# --- python.bindings


@pytest.mark.parametrize(
    ("version", "status"), [("2.10.2", "ok"), ("2.10.1", "warning"), ("2.11.0", "warning"), ("", "warning")]
)
def test_bindings(subject: DoctorContext, version: str, status: str) -> None:
    fakes.checkout(subject.cwd, "3.8")
    prefix = subject.env.venv
    if version:
        install(site_of(prefix), "nanobind", version)
    found = only(python_triton.bindings, see(subject, prefix))
    assert found.status == status
    assert "the checkout requires ==2.10.2" in found.seen
    assert found.commands == (() if status == "ok" else ("invoke build-triton --env dev",))


def test_bindings_of_a_python_in_which_nothing_is_built(subject: DoctorContext, env: Path) -> None:
    assert only(python_triton.bindings, see(subject, subject.env.venv)).status == "not applicable"
    fakes.checkout(subject.cwd, "3.8")
    assert only(python_triton.bindings, see(subject, env)).status == "not applicable"
    subject.settings = Settings("dev", triton=TritonSettings(wheel="newest"))
    assert only(python_triton.bindings, see(subject, subject.env.venv)).status == "not applicable"


# --- python.import


def real(subject: DoctorContext) -> Path:
    """A real interpreter, whose packages are read anew."""
    python = venv(subject.cwd / "real")
    subject.interpreter = python
    return site_of(python.parents[1])


@pytest.mark.parametrize(
    ("text", "status", "says"),
    [
        ("__version__ = '3.5.0'", "ok", "import triton: 3.5.0"),
        ("import no_such_module", "error", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(3)", "error", "SystemExit: 3"),
        ("raise ImportError('a.so: undefined symbol: x\\n  of y')", "error", "of y"),
        ("import os; os.abort()", "error", "the process crashed"),
        ("print('noise')\n__version__ = '3.5.0'", "ok", "import triton: 3.5.0"),
    ],
)
def test_an_import(subject: DoctorContext, text: str, status: str, says: str) -> None:
    install(real(subject), "triton", "3.5.0", {"triton/__init__.py": text})
    subject.packages = python_env.read(subject.cwd / "real" / "bin" / "python")
    found = only(python_triton.imports, subject)
    assert found.status == status
    assert says in found.seen


def test_an_import_that_hangs(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_triton, "_TIMEOUT", 0.5)
    install(real(subject), "triton", "3.5.0", {"triton/__init__.py": "import time; time.sleep(60)"})
    subject.packages = python_env.read(subject.cwd / "real" / "bin" / "python")
    assert "no answer in" in only(python_triton.imports, subject).seen


def test_torch_is_imported_too(subject: DoctorContext) -> None:
    site = real(subject)
    triton(site)
    torch(site.parents[2], "2.13.0")
    subject.packages = python_env.read(subject.cwd / "real" / "bin" / "python")
    assert [found.seen.partition(",")[0].split()[1] for found in python_triton.imports(subject)] == [
        "triton:",
        "torch:",
    ]
    assert not (site / "torch" / "__pycache__").exists()  # looking changes nothing


# --- python.ptxas


@pytest.mark.parametrize("folder", ["backends/nvidia/bin", "third_party/cuda/bin"])
def test_a_ptxas_that_runs(subject: DoctorContext, env: Path, folder: str) -> None:
    triton(site_of(env))
    path = ptxas(env, folder, "#!/bin/sh\necho 'Cuda compilation tools, release 12.8, V12.8.93'\n")
    found = only(python_triton.ptxas, see(subject, env))
    assert (found.status, found.seen, found.where) == ("ok", "ptxas 12.8", str(path))


def ptxas(prefix: Path, folder: str, text: str, mode: int = 0o755) -> Path:
    path = site_of(prefix) / "triton" / folder / "ptxas"
    put(path.parent, {"ptxas": text})
    path.chmod(mode)
    return path


def test_a_ptxas_that_may_not_be_executed(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    path = ptxas(env, "backends/nvidia/bin", "#!/bin/sh\n", 0o644)
    found = only(python_triton.ptxas, see(subject, env))
    assert (found.status, found.commands) == ("error", (f"chmod +x '{path}'",))


def test_a_ptxas_that_fails(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    ptxas(env, "backends/nvidia/bin", "#!/bin/sh\nexit 1\n")
    assert only(python_triton.ptxas, see(subject, env)).seen == "ptxas --version fails"


def test_a_ptxas_of_another_machine(subject: DoctorContext, env: Path) -> None:
    triton(site_of(env))
    elf.write(site_of(env) / "triton" / "backends" / "nvidia" / "bin" / "ptxas", {}, elf.AARCH64).chmod(0o755)
    found = only(python_triton.ptxas, see(subject, env))
    assert found.status == "error"
    assert "ptxas is for aarch64, this machine is x86_64" in found.seen


def test_a_ptxas_that_a_variable_names(subject: DoctorContext, env: Path) -> None:
    subject.environ = {"TRITON_PTXAS_PATH": "/no/such/ptxas"}
    found = only(python_triton.ptxas, see(subject, env))
    assert (found.status, found.where) == ("error", "/no/such/ptxas")
    program = Path(shutil.which("true") or sys.executable)
    subject.environ = {"TRITON_PTXAS_PATH": str(program)}
    subject.host = replace(subject.host, arch=platform.machine())
    assert only(python_triton.ptxas, subject).where == str(program)


def test_no_ptxas(subject: DoctorContext, env: Path) -> None:
    assert only(python_triton.ptxas, see(subject, env)).status == "not applicable"
    assert python_of(env).triton_owners == ()


# `triton_kernels` beside a Triton, in every way that it may be installed.

FITS = "import triton\n@triton.jit\ndef f(): pass\n"
AHEAD = "import triton\nfrom triton.tools.ragged_tma import load_ragged\n"


@pytest.fixture
def kernels_env(subject: DoctorContext) -> Path:
    """An environment with a Triton that has `jit`."""
    prefix = subject.cwd / "an env"
    triton(site_of(prefix))
    put(site_of(prefix), {"triton/__init__.py": "__version__ = '3.5.0'\ndef jit(f): return f\n"})
    return prefix


def kernels(prefix: Path, text: str, name: str = "triton_kernels", **more: str) -> None:
    files = {"triton_kernels/__init__.py": "", "triton_kernels/matmul.py": text}
    install(site_of(prefix), name, "1.0.0", files, more=more)


def test_without_it(subject: DoctorContext, kernels_env: Path) -> None:
    found = only(python_triton.triton_kernels, see(subject, kernels_env))
    assert (found.status, found.seen) == ("not applicable", "no triton_kernels installed")


def test_without_a_triton(subject: DoctorContext) -> None:
    kernels(subject.cwd / "bare", FITS)
    assert only(python_triton.triton_kernels, see(subject, subject.cwd / "bare")).status == "not applicable"


def test_one_that_fits(subject: DoctorContext, kernels_env: Path) -> None:
    kernels(kernels_env, FITS)
    found = only(python_triton.triton_kernels, see(subject, kernels_env))
    assert (found.status, found.seen) == ("ok", "triton_kernels 1.0.0 uses only names that Triton 3.5.0 has")


def test_one_that_does_not(subject: DoctorContext, kernels_env: Path) -> None:
    url = {
        "url": "https://x",
        "vcs_info": {"vcs": "git", "requested_revision": "main", "commit_id": "0" * 40},
    }
    kernels(kernels_env, AHEAD, **{"direct_url.json": json.dumps(url)})
    found = only(python_triton.triton_kernels, see(subject, kernels_env))
    assert found.status == "error"
    assert found.seen == "triton_kernels 1.0.0 (main) uses what Triton 3.5.0 lacks: triton.tools"
    assert "matmul.py:2" in found.affects
    (pip,) = found.commands
    assert "triton@v3.5.0#subdirectory=python/triton_kernels" in pip


def test_a_call_that_would_fail_is_a_warning(subject: DoctorContext, kernels_env: Path) -> None:
    kernels(kernels_env, "import triton\ndef f(): triton.gone()\n")
    found = only(python_triton.triton_kernels, see(subject, kernels_env))
    assert (found.status, found.affects) == ("warning", "these calls fail: matmul.py:2 f")


def test_that_of_another_package_is_named_after_it(subject: DoctorContext, kernels_env: Path) -> None:
    kernels(kernels_env, AHEAD, "sgl_kernel")
    found = only(python_triton.triton_kernels, see(subject, kernels_env))
    assert found.seen.startswith("triton_kernels of sgl-kernel 1.0.0 uses")


def test_vllms_own(subject: DoctorContext, kernels_env: Path) -> None:
    place = "vllm/third_party/triton_kernels"
    put(site_of(kernels_env), {f"{place}/__init__.py": "", f"{place}/matmul.py": AHEAD})
    kernels(kernels_env, FITS)
    fine, wrong = python_triton.triton_kernels(see(subject, kernels_env))
    assert (fine.status, wrong.status) == ("ok", "error")
    assert wrong.seen.startswith("triton_kernels in vllm uses")
    assert wrong.commands == ("invoke pins --package vllm",)


def test_an_editable_one(subject: DoctorContext, kernels_env: Path) -> None:
    source = subject.cwd / "src" / "triton_kernels"
    put(source, {"__init__.py": AHEAD})
    hook = "__editable___triton_kernels_1_0_0_finder.py"
    put(
        site_of(kernels_env),
        {hook: f"MAPPING: dict[str, str] = {{'triton_kernels': {str(source)!r}}}\nNAMESPACES = {{}}\n"},
    )
    found = only(python_triton.triton_kernels, see(subject, kernels_env))
    assert (found.status, found.where) == ("error", str(source))


def test_beside_a_triton_that_has_none(subject: DoctorContext) -> None:
    old = subject.cwd / "old"
    triton(site_of(old), version="3.3.1")
    kernels(old, AHEAD)
    found = only(python_triton.triton_kernels, see(subject, old))
    assert found.remedy == "remove it: triton_kernels needs Triton 3.4 or later"
    assert not found.commands


# The good state, with a real Triton, is in tests/integration/test_up.py.


@pytest.fixture
def python_compile_subject(tmp_path: Path) -> DoctorContext:
    """A real Python environment without pip."""
    venv = tmp_path / "a venv"
    subprocess.run((sys.executable, "-m", "venv", "--without-pip", venv), check=True)
    space = Workspace(tmp_path / "space")
    return DoctorContext(Settings("dev"), space, python=venv / "bin" / "python", cwd=tmp_path)


@pytest.mark.parametrize("version", ["", "2.1.0"])
def test_nothing_that_could_compile(
    python_compile_subject: DoctorContext, tmp_path: Path, version: str
) -> None:
    if version:
        install(site_of(tmp_path / "a venv"), "triton", version, {"triton/__init__.py": ""})
    (found,) = deep.compiles(python_compile_subject)
    assert (found.status, found.check) == ("not applicable", "python.compile")


def test_a_triton_that_does_not_load(python_compile_subject: DoctorContext, tmp_path: Path) -> None:
    broken = "raise ImportError('libtriton.so: undefined symbol: PyX')\n"
    install(site_of(tmp_path / "a venv"), "triton", "3.5.0", {"triton/__init__.py": broken})
    (found,) = deep.compiles(python_compile_subject)
    assert found.status == "error"
    assert "Triton 3.5.0 does not compile vector-add for cuda:80:32" in found.seen
    assert "undefined symbol: PyX" in found.seen
    assert found.commands
