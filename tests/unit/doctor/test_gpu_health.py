"""Faulty GPUs, by samples of nvidia-smi: element names of an H200 with a driver 580, and of older drivers."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.unit.doctor.conftest import only
from tritonsmith.core import configs
from tritonsmith.core.plan.process import CommandOutput
from tritonsmith.doctor import gpu_health, history
from tritonsmith.doctor.check import Check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import ok
from tritonsmith.facts import kernel_log, machine, nvidia_smi
from tritonsmith.facts.gpus import Driver, Gpu, Gpus

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
CHECKS = (gpu_health.memory, gpu_health.reset, gpu_health.throttle)


@pytest.fixture
def subject(subject: DoctorContext) -> DoctorContext:
    subject.gpus = Gpus((Gpu("nvidia", "NVIDIA H200", "9.0"),), Driver("580.159.04", "13.0"))
    return subject


def given(subject: DoctorContext, text: str) -> DoctorContext:
    subject.smi = nvidia_smi.parse(text)
    return subject


def with_value(element: str, value: str, at: str = HEALTHY) -> str:
    made, count = re.subn(rf"(<{element}>)[^<]*", rf"\g<1>{value}", at, count=1)
    assert count == 1
    return made


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.id)
def test_a_healthy_gpu(subject: DoctorContext, check: Check) -> None:
    found = only(check, given(subject, HEALTHY))
    assert found.status == "ok"
    assert found.seen.startswith("NVIDIA H200 at 00000000:00:06.0: ")


@pytest.mark.parametrize(
    ("check", "element", "value", "status", "says"),
    [
        (gpu_health.memory, "remapped_row_failure", "Yes", "error", "could not be remapped"),
        (gpu_health.memory, "unrepairable_memory", "Yes", "error", "cannot be repaired"),
        (gpu_health.memory, "dram_uncorrectable", "3", "error", "since the driver was loaded: 3"),
        (gpu_health.memory, "sram_uncorrectable_parity", "1", "error", "caches or registers"),
        (gpu_health.memory, "sram_uncorrectable_secded", "1", "error", "SEC-DED"),
        (gpu_health.memory, "sram_threshold_exceeded", "Yes", "warning", "threshold"),
        (gpu_health.memory, "remapped_row_unc", "2", "note", "remapped after uncorrectable errors: 2"),
        (gpu_health.reset, "gpu_recovery_action", "Reset", "error", "asks for: Reset"),
        (gpu_health.reset, "gpu_recovery_action", "Drain P2P", "error", "asks for: Drain P2P"),
        (gpu_health.reset, "remapped_row_pending", "Yes", "warning", "waits for a reset"),
        (gpu_health.reset, "channel_repair_pending", "Yes", "warning", "waits for a reset"),
        (gpu_health.throttle, "clocks_event_reason_sw_thermal_slowdown", "Active", "warning", "too hot"),
        (gpu_health.throttle, "clocks_event_reason_hw_power_brake_slowdown", "Active", "warning", "supply"),
        (gpu_health.throttle, "clocks_event_reason_sw_power_cap", "Active", "note", "power limit"),
    ],
)
def test_each_sign(
    subject: DoctorContext, check: Check, element: str, value: str, status: str, says: str
) -> None:
    found = only(check, given(subject, with_value(element, value)))
    assert (found.status, says in found.seen) == (status, True)
    assert found.affects


@pytest.mark.parametrize("value", ["N/A", "[N/A]", "Not Supported", "[Unknown Error]", "", "-", "many", "²"])
def test_what_is_no_number_is_no_sign(subject: DoctorContext, value: str) -> None:
    assert only(gpu_health.memory, given(subject, with_value("dram_uncorrectable", value))).status == "ok"


def test_an_older_driver(subject: DoctorContext) -> None:
    given(subject, OLD)
    assert only(gpu_health.memory, subject).seen.endswith("since the driver was loaded: 2")
    assert only(gpu_health.reset, subject).status == "warning"
    assert [one.status for one in gpu_health.throttle(subject)] == ["warning", "note"]


def test_a_driver_that_tells_nothing(subject: DoctorContext) -> None:
    given(subject, '<nvidia_smi_log><gpu id="1"/></nvidia_smi_log>')
    assert {only(check, subject).status for check in CHECKS} == {"not applicable"}


def test_a_lost_gpu(subject: DoctorContext) -> None:
    text = with_value("sram_correctable", "[GPU requires reset]")
    first, *_ = gpu_health.reset(given(subject, text))
    assert (first.status, "GPU requires reset" in first.seen) == ("error", True)


@pytest.mark.parametrize(
    "text", ["", "<a", "Failed to initialize NVML", '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>']
)
def test_an_answer_that_is_none(text: str) -> None:
    with pytest.raises(nvidia_smi.SmiError):
        nvidia_smi.parse(text)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (None, "did not answer"),
        (CommandOutput(9, "NVML: Driver/library version mismatch", ""), "ends with 9"),
    ],
)
def test_an_nvidia_smi_that_fails(
    subject: DoctorContext, answer: CommandOutput | None, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tritonsmith.core.plan.process.which", lambda _: "/usr/bin/nvidia-smi")
    monkeypatch.setattr("tritonsmith.core.plan.process.query", lambda *_, **__: answer)
    assert (only(gpu_health.reset, subject).status, says in only(gpu_health.reset, subject).seen) == (
        "warning",
        True,
    )
    assert only(gpu_health.memory, subject).status == "not applicable"


def test_without_a_driver_or_its_program(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tritonsmith.core.plan.process.which", lambda _: None)
    assert only(gpu_health.reset, subject).seen == "no nvidia-smi on PATH"
    subject.gpus = Gpus()
    for check in (*CHECKS, gpu_health.xid, gpu_health.uptime):
        assert only(check, subject).seen == "no NVIDIA driver"


def test_xids(subject: DoctorContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "read", lambda: LOG)
    found = gpu_health.xid(subject)
    assert [(one.status, one.seen.partition(":")[0]) for one in found] == [
        ("note", "Xid 31 on 0000"),
        ("warning", "Xid 79 on 0000"),
        ("note", "Xid 999 on 0000"),
    ]
    assert "2 times: the GPU has fallen off the bus" in found[1].seen
    assert "secret-program" not in str(found)
    monkeypatch.setattr(kernel_log, "read", lambda: "nothing of the kind")
    assert only(gpu_health.xid, subject).status == "ok"
    monkeypatch.setattr(kernel_log, "read", lambda: None)
    assert only(gpu_health.xid, subject).status == "not applicable"


def test_a_driver_that_changed_without_a_restart(
    subject: DoctorContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "uptime", lambda: 3 * 86400.0)
    assert "knows no change" in only(gpu_health.uptime, subject).seen
    for version in ("570.1", "580.159.04"):
        history.keep(subject, (ok("x"),), {"driver": version})
    found = only(gpu_health.uptime, subject)
    assert (found.status, "without a restart" in found.seen) == ("note", True)
    monkeypatch.setattr(machine, "uptime", lambda: 0.0)
    assert only(gpu_health.uptime, subject).status == "ok"
    monkeypatch.setattr(machine, "uptime", lambda: None)
    assert only(gpu_health.uptime, subject).status == "not applicable"


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
