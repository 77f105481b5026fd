from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import only
from tests.unit.facts import fakes
from tritonsmith.core import configs
from tritonsmith.core.process import CommandOutput
from tritonsmith.doctor import gpu, history, run
from tritonsmith.doctor.check import Check, DoctorContext, Finding, ok
from tritonsmith.facts import checkout, gpus, machine
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
    for check in run.checks_of(gpu)[1:]:
        # Some known issues are of every target, so they are there without a GPU.
        assert statuses(check, subject) == ["note" if check is gpu.issues else "not applicable"]


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
    assert found.commands == ("invoke up --ptxas 12.8",)
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


@pytest.mark.parametrize(
    ("version", "device", "name", "release"),
    [
        ("3.4.0", SPARK, "sm_121a", "12.9"),
        # Triton asks for the architecture-specific target from 9.0 on only; before 3.3, for that of 9.0 only.
        ("3.4.0", Gpu("nvidia", "of 8.8", "8.8"), "sm_88", "13.0"),
        ("3.2.0", SPARK, "sm_121", "12.9"),
    ],
)
def test_what_an_unknown_name_ends_with(
    subject: DoctorContext, version: str, device: Gpu, name: str, release: str
) -> None:
    bundled(subject, version, ptxas="12.8")
    nvidia(subject, device)
    found = only(gpu.arch, subject)
    assert f"Value '{name}' is not defined" in found.affects
    assert found.commands == (f"invoke up --ptxas {release}",)


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


def test_known_issues_of_a_hopper(subject: DoctorContext) -> None:
    bundled(subject, "3.8.0", ptxas="12.9")
    nvidia(subject, H200)
    findings = {finding.seen: finding for finding in gpu.issues(subject)}
    read = next(finding for seen, finding in findings.items() if seen.startswith("triton#11836: "))
    assert (read.status, read.affects) == ("note", "")
    assert "kernel.lint" in read.remedy
    registers = next(finding for seen, finding in findings.items() if seen.startswith("triton#11781: "))
    assert registers.status == "warning"
    assert "any may be affected" in registers.affects
    assert not any(seen.startswith("fla#640") for seen in findings), "3.7.1 has the fix"
    assert not any("tl.dot_scaled" in seen for seen in findings), "that is a bug of AMD's"


def test_known_issues_without_a_gpu_or_of_none(subject: DoctorContext) -> None:
    install(subject, "3.8.0")
    assert {finding.status for finding in gpu.issues(subject)} == {"note"}
    install(subject, "99.0")
    (only_one,) = gpu.issues(subject)
    assert (only_one.status, only_one.seen) == ("ok", "none is known of Triton 99.0 here")


def test_releases_of_the_table_are_in_order() -> None:
    table = configs.load("gpus")["nvidia"]
    assert list(table["capability"]) == sorted(
        table["capability"], key=lambda text: tuple(map(int, text.split(".")))
    )
    assert [row["since"] for row in table["oldest"]] == ["2.0", "3.3"]
    assert table["ptxas"][0]["capability"] == "0"  # there is always one


# Faulty GPUs, by samples of nvidia-smi: element names of an H200 with a driver 580, and of older drivers.

HEALTHY = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">
<nvidia_smi_log>
  <driver_version>580.159.04</driver_version>
  <attached_gpus>1</attached_gpus>
  <gpu id="00000000:00:06.0">
    <product_name>NVIDIA H200</product_name>
    <gpu_recovery_action>None</gpu_recovery_action>
    <clocks_event_reasons>
      <clocks_event_reason_gpu_idle>Active</clocks_event_reason_gpu_idle>
      <clocks_event_reason_sw_power_cap>Not Active</clocks_event_reason_sw_power_cap>
      <clocks_event_reason_hw_thermal_slowdown>Not Active</clocks_event_reason_hw_thermal_slowdown>
      <clocks_event_reason_sw_thermal_slowdown>Not Active</clocks_event_reason_sw_thermal_slowdown>
      <clocks_event_reason_hw_power_brake_slowdown>Not Active</clocks_event_reason_hw_power_brake_slowdown>
    </clocks_event_reasons>
    <ecc_errors>
      <volatile>
        <sram_correctable>0</sram_correctable>
        <sram_uncorrectable_parity>0</sram_uncorrectable_parity>
        <sram_uncorrectable_secded>0</sram_uncorrectable_secded>
        <dram_correctable>0</dram_correctable>
        <dram_uncorrectable>0</dram_uncorrectable>
      </volatile>
      <aggregate>
        <sram_correctable>28</sram_correctable>
        <dram_uncorrectable>0</dram_uncorrectable>
        <sram_threshold_exceeded>No</sram_threshold_exceeded>
      </aggregate>
      <channel_repair_pending>No</channel_repair_pending>
      <tpc_repair_pending>No</tpc_repair_pending>
      <unrepairable_memory>No</unrepairable_memory>
    </ecc_errors>
    <retired_pages>
      <pending_blacklist>N/A</pending_blacklist>
      <pending_retirement>N/A</pending_retirement>
    </retired_pages>
    <remapped_rows>
      <remapped_row_unc>0</remapped_row_unc>
      <remapped_row_pending>No</remapped_row_pending>
      <remapped_row_failure>No</remapped_row_failure>
    </remapped_rows>
  </gpu>
</nvidia_smi_log>
"""
OLD = """<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v11.dtd">
<nvidia_smi_log>
  <gpu id="00000000:3B:00.0">
    <product_name>Tesla V100</product_name>
    <clocks_throttle_reasons>
      <clocks_throttle_reason_hw_thermal_slowdown>Active</clocks_throttle_reason_hw_thermal_slowdown>
      <clocks_throttle_reason_sw_power_cap>Active</clocks_throttle_reason_sw_power_cap>
    </clocks_throttle_reasons>
    <ecc_errors>
      <volatile>
        <double_bit><device_memory>2</device_memory><total>2</total></double_bit>
      </volatile>
      <aggregate><double_bit><total>N/A</total></double_bit></aggregate>
    </ecc_errors>
    <retired_pages><pending_blacklist>Yes</pending_blacklist></retired_pages>
    <remapped_rows>N/A</remapped_rows>
  </gpu>
</nvidia_smi_log>
"""
LOG = """[    3.7] NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  580.159.04
[  100.0] NVRM: Xid (PCI:0000:06:00): 31, pid=4242, name=secret-program, Ch 00000008, intr 00000000. MMU Fault
[  200.0] NVRM: Xid (PCI:0000:06:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[  201.0] NVRM: Xid (PCI:0000:06:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.
[  300.0] NVRM: Xid (0000:07:00): 999, something new
[  300.0] NVRM: Xid (PCI:garbled
"""
CHECKS = (gpu.memory, gpu.reset, gpu.throttle)


@pytest.fixture
def gpu_health_subject(subject: DoctorContext) -> DoctorContext:
    subject.gpus = Gpus((Gpu("nvidia", "NVIDIA H200", "9.0"),), Driver("580.159.04", "13.0"))
    return subject


def given(gpu_health_subject: DoctorContext, text: str) -> DoctorContext:
    gpu_health_subject.smi = gpus.parse_smi(text)
    return gpu_health_subject


def with_value(element: str, value: str, at: str = HEALTHY) -> str:
    made, count = re.subn(rf"(<{element}>)[^<]*", rf"\g<1>{value}", at, count=1)
    assert count == 1
    return made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_healthy_gpu(gpu_health_subject: DoctorContext, check: Check) -> None:
    found = only(check, given(gpu_health_subject, HEALTHY))
    assert found.status == "ok"
    assert found.seen.startswith("NVIDIA H200 at 00000000:00:06.0: ")


@pytest.mark.parametrize(
    ("check", "element", "value", "status", "says"),
    [
        (gpu.memory, "remapped_row_failure", "Yes", "error", "could not be remapped"),
        (gpu.memory, "unrepairable_memory", "Yes", "error", "cannot be repaired"),
        (gpu.memory, "dram_uncorrectable", "3", "error", "since the driver was loaded: 3"),
        (gpu.memory, "sram_uncorrectable_parity", "1", "error", "caches or registers"),
        (gpu.memory, "sram_uncorrectable_secded", "1", "error", "SEC-DED"),
        (gpu.memory, "sram_threshold_exceeded", "Yes", "warning", "threshold"),
        (gpu.memory, "remapped_row_unc", "2", "note", "remapped after uncorrectable errors: 2"),
        (gpu.reset, "gpu_recovery_action", "Reset", "error", "requests: Reset"),
        (gpu.reset, "gpu_recovery_action", "Drain P2P", "error", "requests: Drain P2P"),
        (gpu.reset, "remapped_row_pending", "Yes", "warning", "waits for a reset"),
        (gpu.reset, "channel_repair_pending", "Yes", "warning", "waits for a reset"),
        (gpu.throttle, "clocks_event_reason_sw_thermal_slowdown", "Active", "warning", "too hot"),
        (gpu.throttle, "clocks_event_reason_hw_power_brake_slowdown", "Active", "warning", "supply"),
        (gpu.throttle, "clocks_event_reason_sw_power_cap", "Active", "note", "power limit"),
    ],
)
def test_each_sign(
    gpu_health_subject: DoctorContext, check: Check, element: str, value: str, status: str, says: str
) -> None:
    found = only(check, given(gpu_health_subject, with_value(element, value)))
    assert (found.status, says in found.seen) == (status, True)
    assert found.affects


@pytest.mark.parametrize("value", ["N/A", "[N/A]", "Not Supported", "[Unknown Error]", "", "-", "many", "²"])
def test_what_is_no_number_is_no_sign(gpu_health_subject: DoctorContext, value: str) -> None:
    assert only(gpu.memory, given(gpu_health_subject, with_value("dram_uncorrectable", value))).status == "ok"


def test_an_older_driver(gpu_health_subject: DoctorContext) -> None:
    given(gpu_health_subject, OLD)
    assert only(gpu.memory, gpu_health_subject).seen.endswith("since the driver was loaded: 2")
    assert only(gpu.reset, gpu_health_subject).status == "warning"
    assert [one.status for one in gpu.throttle(gpu_health_subject)] == ["warning", "note"]


def test_a_driver_that_tells_nothing(gpu_health_subject: DoctorContext) -> None:
    given(gpu_health_subject, '<nvidia_smi_log><gpu id="1"/></nvidia_smi_log>')
    assert {only(check, gpu_health_subject).status for check in CHECKS} == {"not applicable"}


def test_a_lost_gpu(gpu_health_subject: DoctorContext) -> None:
    text = with_value("sram_correctable", "[GPU requires reset]")
    first, *_ = gpu.reset(given(gpu_health_subject, text))
    assert (first.status, "GPU requires reset" in first.seen) == ("error", True)


@pytest.mark.parametrize(
    "text", ["", "<a", "Failed to initialize NVML", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>']
)
def test_an_answer_that_is_none(text: str) -> None:
    with pytest.raises(gpus.SmiError):
        gpus.parse_smi(text)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "did not answer"),
        (CommandOutput(9, "NVML: Driver/library version mismatch", ""), "ends with 9"),
    ],
)
def test_an_nvidia_smi_that_fails(
    gpu_health_subject: DoctorContext,
    answer: CommandOutput | None,
    says: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tritonsmith.core.process.which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr("tritonsmith.core.process.query", lambda *_, **__: answer)
    assert (only(gpu.reset, gpu_health_subject).status, says in only(gpu.reset, gpu_health_subject).seen) == (
        "warning",
        True,
    )
    assert only(gpu.memory, gpu_health_subject).status == "not applicable"


def test_without_a_driver_or_its_program(
    gpu_health_subject: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonsmith.core.process.which", lambda _: None)
    assert only(gpu.reset, gpu_health_subject).seen == "no nvidia-smi on PATH"
    gpu_health_subject.gpus = Gpus()
    for check in (*CHECKS, gpu.xid, gpu.uptime):
        assert only(check, gpu_health_subject).seen == "no NVIDIA driver"


def test_xids(gpu_health_subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpus, "read_kernel_log", lambda: LOG)
    found = gpu.xid(gpu_health_subject)
    assert [(one.status, one.seen.partition(":")[0]) for one in found] == [
        ("note", "Xid 31 on 0000"),
        ("warning", "Xid 79 on 0000"),
        ("note", "Xid 999 on 0000"),
    ]
    assert "2 times: the GPU has fallen off the bus" in found[1].seen
    # Nobody knows what an unknown number did.
    assert [one.affects.partition(" ")[0] for one in found] == ["the", "usually", ""]
    assert "secret-program" not in str(found)
    monkeypatch.setattr(gpus, "read_kernel_log", lambda: "nothing of the kind")
    assert only(gpu.xid, gpu_health_subject).status == "ok"
    monkeypatch.setattr(gpus, "read_kernel_log", lambda: None)
    assert only(gpu.xid, gpu_health_subject).status == "not applicable"


def test_a_driver_that_changed_without_a_restart(
    gpu_health_subject: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "uptime", lambda: 3 * 86400.0)
    assert "records no driver change" in only(gpu.uptime, gpu_health_subject).seen
    for version in ("570.1", "580.159.04"):
        history.keep(gpu_health_subject, (ok("x"),), {"driver": version})
    found = only(gpu.uptime, gpu_health_subject)
    assert (found.status, "without a restart" in found.seen) == ("note", True)
    monkeypatch.setattr(machine, "uptime", lambda: 0.0)
    assert only(gpu.uptime, gpu_health_subject).status == "ok"
    monkeypatch.setattr(machine, "uptime", lambda: None)
    assert only(gpu.uptime, gpu_health_subject).status == "not applicable"


def test_the_uptime_of_a_machine(tmp_path: Path) -> None:
    assert machine.uptime(tmp_path) is None
    (tmp_path / "uptime").write_text("24.43 381.78\n")
    assert machine.uptime(tmp_path) == 24.43
    (tmp_path / "uptime").write_text("soon\n")
    assert machine.uptime(tmp_path) is None


def test_each_row_belongs_to_a_check_and_says_what_to_do() -> None:
    rows = configs.load("gpu-health")["sign"]
    assert {row["check"] for row in rows} == {check.id for check in CHECKS}
    assert [row["says"] for row in rows if row["status"] != "note" and not row.get("remedy")] == []
