"""Group `gpu`, second half: faulty, slowed or reset-pending GPUs, and errors in the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.errors import SmithError
from tritonsmith.core.ui.units import age
from tritonsmith.doctor import history
from tritonsmith.doctor.check import check
from tritonsmith.doctor.context import DoctorContext
from tritonsmith.doctor.finding import Finding, NotApplicableError, error, note, ok, skipped, warning
from tritonsmith.facts import kernel_log, machine
from tritonsmith.facts.nvidia_smi import SmiGpu

_NO_NVIDIA = "no NVIDIA driver"
_XIDS = "https://docs.nvidia.com/deploy/xid-errors/"


@check("gpu.memory", "ECC errors and remapped rows of NVIDIA GPUs")
def memory(subject: DoctorContext) -> Iterator[Finding]:
    """Check memory errors; the texts tell whether a counter survives a restart or the driver's reload."""
    yield from _signs(subject, "gpu.memory", "no uncorrectable memory error, no failed repair")


@check("gpu.reset", "resets that NVIDIA GPUs wait for")
def reset(subject: DoctorContext) -> Iterator[Finding]:
    """Find pending resets; such a GPU may still compute, with parts that are known to be bad."""
    if isinstance(subject.smi, str) and subject.gpus.of("nvidia") and not subject.smi.startswith("no "):
        yield warning(
            subject.smi,
            affects="a GPU may hang or be lost",
            remedy="run it by hand: nvidia-smi -q; if it hangs, too, restart the machine",
        )
        return
    for gpu in _gpus(subject):
        lost = gpu.anywhere(configs.load("gpu-health")["unreadable"]["lost"])
        if lost:
            yield error(
                f"{gpu.name}: nvidia-smi says {lost!r} instead of values",
                affects="no kernel runs on it",
                remedy="end the programs that use it, then `sudo nvidia-smi --gpu-reset -i ID`, or restart",
            )
    yield from _signs(subject, "gpu.reset", "no reset is pending")


@check("gpu.throttle", "what slows NVIDIA GPUs down at this moment")
def throttle(subject: DoctorContext) -> Iterator[Finding]:
    """Find reasons for throttling, which show only while a program runs."""
    yield from _signs(subject, "gpu.throttle", "nothing slows it down at this moment")


@check("gpu.xid", "errors (Xid) that NVIDIA's driver reported since the start of the machine")
def xid(subject: DoctorContext) -> Iterator[Finding]:
    """Report Xids; one of a program is usual after an illegal access, one of the GPU outlasts the program."""
    if not subject.gpus.nvidia:
        raise NotApplicableError(_NO_NVIDIA)
    text = kernel_log.read()
    if text is None:
        raise NotApplicableError("this user may not read the kernel's log: sudo dmesg | grep Xid")
    table: dict[str, Any] = configs.load("gpu-health")["xid"]
    counts = Counter(kernel_log.xids(text.splitlines()))
    for (number, bus), count in counts.items():
        row = table.get(str(number), {"by": "", "says": "not in tritonsmith's table"})
        make = warning if row["by"] == "gpu" else note
        yield make(
            f"Xid {number} on {bus}{f', {count} times' if count > 1 else ''}: {row['says']}",
            affects="the GPU, its link or its driver failed, as a rule; results since then are in doubt"
            if row["by"] == "gpu"
            else "the program that met it was stopped",
            remedy=f"{_XIDS} says what to do; they stay in the log until the next start",
        )
    if not counts:
        yield ok("no Xid in what the kernel's log holds")


@check("gpu.uptime", "how long NVIDIA's driver and the machine run")
def uptime(subject: DoctorContext) -> Iterator[Finding]:
    """Report a driver change without a restart, after which programs still use the old driver's libraries."""
    driver, up = subject.gpus.nvidia, machine.uptime()
    if not driver or up is None:
        raise NotApplicableError(_NO_NVIDIA if not driver else "the uptime cannot be read")
    text = f"driver {driver.version or 'unknown'}, machine up {age(up)}"
    try:
        change = history.driver_since(history.read(subject.env.history), driver.version)
    except SmithError:
        change = None  # `doctor` reports a damaged history
    if change is None:
        yield ok(f"{text}; the history of this environment knows no change of the driver")
    elif change.seconds < up:
        yield note(
            f"{text}; the driver changed {age(change.seconds)} ago (history), without a restart since",
            affects="programs that run since before that have the old driver's libraries",
            remedy="restart those programs, or the machine",
        )
    else:
        yield ok(f"{text}; the driver changed {age(change.seconds)} ago (history)")


def _gpus(subject: DoctorContext) -> tuple[SmiGpu, ...]:
    """Return the values of nvidia-smi.

    Raises:
        NotApplicableError: there is no driver, or no answer.
    """
    if not subject.gpus.nvidia:
        raise NotApplicableError(_NO_NVIDIA)
    if isinstance(subject.smi, str):
        raise NotApplicableError(subject.smi)
    return subject.smi


def _signs(subject: DoctorContext, name: str, fine: str) -> Iterator[Finding]:
    rows = [row for row in configs.load("gpu-health")["sign"] if row["check"] == name]
    for gpu in _gpus(subject):
        values = [(row, gpu.value(*row["paths"])) for row in rows]
        findings = [_finding(gpu, row, value) for row, value in values if _is_bad(value, row["bad"])]
        if findings:
            yield from findings
        elif any(value for _, value in values):
            yield ok(f"{gpu.name}: {fine}")
        else:
            yield skipped(f"{gpu.name}: its driver does not tell")


def _is_bad(value: str, bad: list[str]) -> bool:
    number = value.split(maxsplit=1)[0] if value else ""
    return value in bad or (">0" in bad and number.isdecimal() and int(number) > 0)


def _finding(gpu: SmiGpu, row: dict[str, Any], value: str) -> Finding:
    text = f"{gpu.name}: {row['says'].format(value=value)}"
    return Finding(row["status"], text, affects=row["affects"], remedy=row.get("remedy", ""))
