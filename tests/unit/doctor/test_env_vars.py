from __future__ import annotations

import pytest

from tritonsmith.doctor import variables
from tritonsmith.doctor.check import DoctorContext


@pytest.mark.parametrize("end", ["", "/" + "x" * 80])
def test_a_password_is_not_shown(subject: DoctorContext, end: str) -> None:
    subject.environ = {"HTTPS_PROXY": f"http://user:secret@proxy{end}"}
    assert variables.assignment(subject, "HTTPS_PROXY").startswith("HTTPS_PROXY='http://***@proxy")


def test_nor_the_beginning_of_a_long_one() -> None:
    assert "secret" not in variables.short_value(f"http://user:{'secret' * 20}@proxy")
