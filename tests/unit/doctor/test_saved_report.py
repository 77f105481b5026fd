"""`up --like REPORT`: what can be had of an environment, and what not."""

from __future__ import annotations

import json
import platform
import tomllib
from pathlib import Path

import pytest

from tritonsmith.core.errors import SmithError
from tritonsmith.doctor import saved_report
from tritonsmith.doctor.check import DoctorContext

PYTHON = platform.python_version()


def report(folder: Path, **setup: str) -> Path:
    path = folder / "their report.json"
    when = "2026-11-20T12:00:00+00:00"
    path.write_text(json.dumps({"schema": 2, "when": when, "env": "x", "findings": [], "setup": setup}))
    return path


def resolved(subject: DoctorContext, **setup: str) -> saved_report.LikeReport:
    return saved_report.resolve(saved_report.read(report(subject.cwd, **setup)), subject)


def test_what_can_be_had_exactly(subject: DoctorContext) -> None:
    found = resolved(subject, triton="3.4.0", torch="2.8.0+cpu", python=PYTHON)
    minor = ".".join(PYTHON.split(".")[:2])
    assert found.name == "like-their-report"
    assert found.values == {
        "triton.wheel": "3.4.0",
        "python.interpreter": minor,
        "python.torch": "2.8.0+cpu",
    }
    assert found.differs == ()
    text = found.env_file(saved_report.read(report(subject.cwd, triton="3.4.0")))
    assert tomllib.loads(text)["python"] == {"interpreter": minor, "torch": "2.8.0+cpu"}


def test_what_cannot_be_had_is_told(subject: DoctorContext) -> None:
    subject.environ = {}
    found = resolved(
        subject,
        triton="pytorch-triton 3.5.1+gitbfeb0668",
        torch="2.9.1+cu128",
        python="3.2.1",
        driver="570.124.06",
        kernel="4.4.0",
        **{"$TRITON_ALWAYS_COMPILE": "1"},
    )
    assert found.values == {"triton.wheel": "3.5.1", "python.torch": "2.9.1+cpu"}
    told = {line.partition(":")[0]: line for line in found.differs}
    assert "pytorch-triton 3.5.1+gitbfeb0668 there; the released wheel 3.5.1 here" in told["Triton"]
    assert told["Python"] == f"Python: 3.2.1 there, {PYTHON} here"
    assert "2.9.1+cu128 there" in told["PyTorch"]
    assert "570.124.06 there" in told["NVIDIA driver"]
    assert "4.4.0 there" in told["Linux kernel"]
    assert told["TRITON_ALWAYS_COMPILE"] == "TRITON_ALWAYS_COMPILE: 1 there, not set here"


def test_a_nightly_torch_is_left_out(subject: DoctorContext) -> None:
    found = resolved(subject, triton="3.4.0", torch="2.10.0.dev20250901+cpu", python=PYTHON)
    assert "python.torch" not in found.values
    assert found.differs == ("PyTorch: 2.10.0.dev20250901+cpu there, none here: not a release",)


@pytest.mark.parametrize("setup", [{}, {"triton": ""}, {"triton": "git\n[python]"}])
def test_a_report_without_a_release(subject: DoctorContext, setup: dict[str, str]) -> None:
    with pytest.raises(SmithError, match="no Triton"):
        resolved(subject, **setup)


def test_a_hostile_report_adds_no_line_to_the_env_file(subject: DoctorContext) -> None:
    path = report(subject.cwd, triton='3.4.0"\n[llvm]', python='3.11"\n', torch='2.8.0+x"\n')
    path.write_text(path.read_text().replace("2026-11-20T", "\\n[llvm]\\n"))
    seen = saved_report.read(path)
    text = saved_report.resolve(seen, subject).env_file(seen)
    assert "\n[llvm]" not in text
    assert tomllib.loads(text)["triton"] == {"wheel": "3.4.0"}
