from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.doctor.conftest import only
from tests.unit.facts import fakes
from tritonsmith.core import configs
from tritonsmith.doctor import gpu, registry
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding
from tritonsmith.facts import checkout, gpus
from tritonsmith.facts.gpus import Driver, Gpu, Gpus, LibCuda
from tritonsmith.facts.python_env import PythonEnv

GIB = 1 << 30
H200 = Gpu("nvidia", "NVIDIA H200", "9.0", 141 * GIB)
B200 = Gpu("nvidia", "NVIDIA B200", "10.0", 179 * GIB)
SPARK = Gpu("nvidia", "NVIDIA GB10", "12.1")
MI300X = Gpu("amd", "ip discovery", "gfx942", 192 * GIB)
R570 = Driver("570.124.06", "12.8")
R580 = Driver("580.65.06", "13.0")


@pytest.fixture
def purelib(subject: DoctorContext) -> Path:
    """The site folder of an installed Triton 3.9.0."""
    return install(subject, "3.9.0")


def install(subject: DoctorContext, version: str) -> Path:
    purelib = subject.cwd / "site-packages"
    subject.checkout = None
    subject.packages = PythonEnv(
        executable=subject.cwd / "python",
        version="3.11.7",
        include=subject.cwd,
        headers=True,
        purelib=purelib,
        platform="linux-x86_64",
        dists=(("triton", version),),
        triton_owners=("triton",),
    )
    return purelib


def nvidia(subject: DoctorContext, *found: Gpu, driver: Driver = R570) -> None:
    subject.gpus = Gpus(found, nvidia=driver)


def ptxas(folder: Path, release: str, name: str = "ptxas") -> Path:
    """What is looked for in one: the text that its `--version` prints, among other bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(b"\x7fELF\0Cuda compilation tools, release %s, V\0" % release.encode())
    return folder / name


def bundled(subject: DoctorContext, version: str, **releases: str) -> Path:
    """Install a Triton with these: `ptxas="12.8"`, `blackwell="13.1"`."""
    folder = install(subject, version) / "triton" / "backends" / "nvidia" / "bin"
    for name, release in releases.items():
        ptxas(folder, release, "ptxas" if name == "ptxas" else f"ptxas-{name}")
    return folder


def statuses(check: Check, subject: DoctorContext) -> list[str]:
    return [found.status for found in check(subject)]


# --- devices


def test_no_gpu_is_a_note_and_the_rest_does_not_apply(subject: DoctorContext, purelib: Path) -> None:
    assert not purelib.exists()
    subject.gpus = Gpus()
    found = only(gpu.devices, subject)
    assert (found.status, found.seen) == ("note", "no GPU")
    assert "GPUTarget" in found.remedy
    for check in registry.of(gpu)[1:]:
        assert statuses(check, subject) == ["not applicable"]


def test_what_is_here(subject: DoctorContext) -> None:
    nvidia(subject, H200, H200, B200)
    assert only(gpu.devices, subject).seen == (
        "2 x NVIDIA H200 (compute capability 9.0, 141 GiB), NVIDIA B200 (compute capability 10.0, 179 GiB); "
        "driver 570.124.06 (CUDA 12.8)"
    )
    subject.gpus = Gpus((MI300X,), amd=Driver("6.12.12"))
    assert only(gpu.devices, subject).seen == "ip discovery (gfx942, 192 GiB); driver 6.12.12"
    nvidia(subject, SPARK, driver=R580)
    assert only(gpu.devices, subject).seen.startswith(
        "NVIDIA GB10 (compute capability 12.1); driver 580.65.06"
    )


@pytest.mark.parametrize(
    ("problem", "remedy"),
    [
        ("NVML: RM has detected an NVML/RM version mismatch.", "restart"),
        ("NVML: NVML Shared Library Not Found", "--gpus all"),
        ("NVML: Driver Not Loaded", "driver is loaded"),
    ],
)
def test_a_driver_that_does_not_answer(subject: DoctorContext, problem: str, remedy: str) -> None:
    nvidia(subject, driver=Driver("570.124.06", problem=problem))
    found = only(gpu.devices, subject)
    assert found.status == "error"
    assert problem in found.seen
    assert "the loaded module is 570.124.06" in found.seen
    assert remedy in found.remedy


def test_a_driver_without_a_gpu(subject: DoctorContext) -> None:
    nvidia(subject)
    found = only(gpu.devices, subject)
    assert found.status == "note"
    assert "reports no GPU" in found.seen


@pytest.mark.parametrize(
    ("value", "expected"), [("", ["ok", "note"]), ("-1", ["ok", "note"]), ("0", ["ok"]), (None, ["ok"])]
)
def test_hidden_gpus(subject: DoctorContext, value: str | None, expected: list[str]) -> None:
    nvidia(subject, H200)
    subject.environ = {} if value is None else {"CUDA_VISIBLE_DEVICES": value}
    assert statuses(gpu.devices, subject) == expected


# --- driver


@pytest.mark.parametrize(
    ("device", "driver", "releases", "status", "says"),
    [
        (H200, R570, {"ptxas": "12.9", "blackwell": "13.4"}, "ok", "as within any CUDA major"),
        (H200, R570, {"ptxas": "12.8"}, "ok", "loads code of CUDA 12.8"),
        (H200, R570, {"ptxas": "12.9"}, "ok", "as within any CUDA major"),
        (H200, R580, {"ptxas": "12.9"}, "ok", "loads code of CUDA 12.9"),
        (B200, R580, {"ptxas": "12.9", "blackwell": "13.4"}, "ok", "as within any CUDA major"),
        (
            B200,
            R570,
            {"ptxas": "12.9", "blackwell": "13.4"},
            "error",
            "ptxas of CUDA 13.4, driver 570.124.06",
        ),
        (H200, Driver("470.82.01", "11.4"), {"ptxas": "12.8"}, "error", "ptxas of CUDA 12.8"),
        (H200, R570, {}, "not applicable", "no ptxas to compare with"),
    ],
)
def test_driver(
    subject: DoctorContext, device: Gpu, driver: Driver, releases: dict[str, str], status: str, says: str
) -> None:
    bundled(subject, "3.8.0", **releases)
    nvidia(subject, device, driver=driver)
    found = only(gpu.driver, subject)
    assert found.status == status
    assert says in found.seen


def test_hopper_s_ptxas_is_of_cuda_13_since_3_9(subject: DoctorContext) -> None:
    bundled(subject, "3.9.0", ptxas="12.9", blackwell="13.4")
    nvidia(subject, H200)
    assert only(gpu.driver, subject).status == "error"
    nvidia(subject, H200, driver=R580)
    assert only(gpu.driver, subject).status == "ok"
    nvidia(subject, Gpu("nvidia", "NVIDIA A100", "8.0"))
    assert only(gpu.driver, subject).seen.endswith("loads code of CUDA 12.9, as within any CUDA major")


def test_a_driver_that_is_too_old_is_told_its_number(subject: DoctorContext) -> None:
    bundled(subject, "3.9.0", blackwell="13.4")
    nvidia(subject, B200)
    found = only(gpu.driver, subject)
    assert "580 or newer" in found.remedy
    assert found.commands == ("invoke toolchain.ptxas 12.8",)
    nvidia(subject, B200, driver=Driver("470.256.02", "11.4"))
    said = "export TRITON_PTXAS_BLACKWELL_PATH=/usr/local/cuda-11.4/bin/ptxas"  # which no package has
    assert only(gpu.driver, subject).commands == (said,)


# --- arch


@pytest.mark.parametrize(
    ("version", "device", "releases", "status"),
    [
        ("3.9.0", H200, {"ptxas": "12.9", "blackwell": "13.4"}, "ok"),
        ("3.2.0", H200, {"ptxas": "12.4"}, "ok"),
        ("2.0.0", H200, {"ptxas": "11.8"}, "error"),  # knows sm_90, not sm_90a
        ("3.4.0", B200, {"ptxas": "12.8"}, "ok"),
        ("3.4.0", SPARK, {"ptxas": "12.8"}, "error"),  # triton#8539
        ("3.3.1", B200, {"ptxas": "12.4", "blackwell": "12.8"}, "ok"),
        ("3.6.0", SPARK, {"ptxas": "12.8", "blackwell": "12.9"}, "ok"),
        ("3.2.0", B200, {"ptxas": "12.4"}, "error"),
        ("3.9.0", Gpu("nvidia", "NVIDIA Thor", "11.0"), {"blackwell": "12.9"}, "error"),
        ("3.7.0", Gpu("nvidia", "NVIDIA Thor", "10.1"), {"blackwell": "13.1"}, "error"),  # renamed
        ("3.9.0", Gpu("nvidia", "Tesla T4", "7.5"), {"ptxas": "12.9"}, "warning"),
        ("3.2.0", Gpu("nvidia", "Tesla T4", "7.5"), {"ptxas": "12.4"}, "ok"),
        ("3.9.0", Gpu("nvidia", "of tomorrow", "13.0"), {"blackwell": "13.4"}, "note"),
        ("3.9.0", B200, {"ptxas": "12.9"}, "not applicable"),
    ],
)
def test_arch(
    subject: DoctorContext, version: str, device: Gpu, releases: dict[str, str], status: str
) -> None:
    bundled(subject, version, **releases)
    nvidia(subject, device, driver=R580)
    assert only(gpu.arch, subject).status == status


def test_what_an_unknown_name_ends_with(subject: DoctorContext) -> None:
    bundled(subject, "3.4.0", ptxas="12.8")
    nvidia(subject, SPARK)
    found = only(gpu.arch, subject)
    assert "Value 'sm_121a' is not defined" in found.affects
    assert found.commands == ("invoke toolchain.ptxas 12.9",)


def test_a_ptxas_that_a_variable_names(subject: DoctorContext, tmp_path: Path) -> None:
    bundled(subject, "3.5.1", ptxas="12.8")
    nvidia(subject, SPARK, driver=R580)
    mine = ptxas(tmp_path / "cuda-13", "13.0")
    subject.environ = {"TRITON_PTXAS_PATH": str(mine)}
    found = only(gpu.arch, subject)
    assert (found.status, found.where) == ("ok", str(mine))
    install(subject, "3.4.0")  # translates no release of CUDA 13
    refused = only(gpu.arch, subject)
    assert refused.status == "error"
    assert refused.seen == "Triton 3.4.0 does not accept ptxas of CUDA 13.0"
    subject.environ = {"TRITON_PTXAS_PATH": str(tmp_path / "gone")}
    assert only(gpu.arch, subject).where.endswith("triton/backends/nvidia/bin/ptxas")


def test_the_ptxas_of_a_checkout(subject: DoctorContext, tmp_path: Path) -> None:
    root = fakes.checkout(tmp_path / "triton", "3.5")
    subject.packages, subject.checkout = None, checkout.read(root)
    nvidia(subject, H200)
    assert "third_party/nvidia/backend/bin" in only(gpu.arch, subject).seen
    here = ptxas(root / "third_party" / "nvidia" / "backend" / "bin", "12.8")
    found = only(gpu.arch, subject)
    assert (found.status, found.where) == ("ok", str(here))


def test_neither_a_checkout_nor_an_installed_triton(subject: DoctorContext) -> None:
    subject.packages = subject.checkout = None
    nvidia(subject, H200)
    found = only(gpu.arch, subject)
    assert found.status == "not applicable"
    assert "neither a checkout nor an installed Triton" in found.seen


def test_a_script_around_ptxas_does_not_tell(subject: DoctorContext) -> None:
    folder = bundled(subject, "3.8.0", ptxas="12.9")
    (folder / "ptxas").write_text("#!/bin/sh\n")
    nvidia(subject, H200)
    assert "cannot read the CUDA release" in only(gpu.arch, subject).seen


def test_each_kind_of_gpu_once(subject: DoctorContext) -> None:
    bundled(subject, "3.9.0", ptxas="12.9", blackwell="13.4")
    nvidia(subject, H200, H200, B200, driver=R580)
    assert statuses(gpu.arch, subject) == ["ok", "ok"]
    assert statuses(gpu.driver, subject) == ["ok", "ok"]


# --- libcuda


@pytest.mark.parametrize(
    ("found", "status"),
    [
        (LibCuda(Path("/lib/libcuda.so.1"), "ldconfig"), "ok"),
        (LibCuda(None, "ldconfig", "there is no /sbin/ldconfig, which Triton runs"), "error"),
    ],
)
def test_libcuda(
    subject: DoctorContext, found: LibCuda, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpus, "libcuda", lambda _: found)
    nvidia(subject, H200)
    seen = only(gpu.libcuda, subject)
    assert seen.status == status
    assert seen.seen == (found.problem or "libcuda.so.1, by ldconfig")


def test_libcuda_by_its_variable(subject: DoctorContext, tmp_path: Path) -> None:
    nvidia(subject, H200)
    subject.environ = {"TRITON_LIBCUDA_PATH": str(tmp_path)}
    assert only(gpu.libcuda, subject).status == "error"
    (tmp_path / "libcuda.so.1").touch()
    assert only(gpu.libcuda, subject).status == "ok"


# --- AMD


def amd(subject: DoctorContext, name: str, problem: str = "") -> list[Finding]:
    subject.gpus = Gpus((Gpu("amd", "x", name),), amd=Driver("6.12.12", problem=problem))
    return list(gpu.amd(subject))


@pytest.mark.parametrize(
    ("version", "name", "status"),
    [
        ("3.0.0", "gfx942", "ok"),
        ("3.2.0", "gfx950", "error"),
        ("3.3.0", "gfx950", "ok"),
        ("3.3.0", "gfx940", "error"),
        ("3.6.0", "gfx906", "error"),
        ("3.7.0", "gfx906", "ok"),
        ("3.9.0", "gfx1201", "ok"),
        ("3.9.0", "gfx803", "error"),
        ("", "gfx1250", "ok"),
    ],
)
def test_amd_s_architectures(subject: DoctorContext, version: str, name: str, status: str) -> None:
    install(subject, version)
    family, access = amd(subject, name)
    assert (family.status, access.status) == (status, "ok")


def test_the_first_release_that_does(subject: DoctorContext) -> None:
    install(subject, "3.2.0")
    assert amd(subject, "gfx950")[0].seen.endswith("; supported since 3.3")
    install(subject, "")
    assert amd(subject, "gfx940")[0].seen == "gfx940: not supported by Triton 3.9 (the newest known)"


def test_kfd_is_closed(subject: DoctorContext, purelib: Path) -> None:
    assert not purelib.exists()
    family, access = amd(
        subject, "gfx942", "/dev/kfd is not accessible to this user; it belongs to the group render"
    )
    assert (family.status, access.status) == ("ok", "error")
    assert access.commands[0].startswith("sudo usermod -a -G render,video ")


# --- the table


def test_releases_of_the_table_are_in_order() -> None:
    table = configs.load("gpus")["nvidia"]
    assert list(table["capability"]) == sorted(
        table["capability"], key=lambda text: tuple(map(int, text.split(".")))
    )
    assert [row["since"] for row in table["oldest"]] == ["2.0", "3.3"]
    assert table["ptxas"][0]["capability"] == "0"  # there is always one
