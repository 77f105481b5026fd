"""The torch of releases of packages, in the real table."""

from __future__ import annotations

import pytest

from tritonsmith.core.errors import UsageError
from tritonsmith.doctor.pins import report
from tritonsmith.facts import package_pins, pytorch_pins

pytestmark = pytest.mark.unit


@pytest.mark.parametrize("name", package_pins.names())
def test_each_torch_is_a_release(name: str) -> None:
    known = {one.version for one in pytorch_pins.releases()}
    found = package_pins.find(name)
    assert len(found) > 10
    assert {one.torch for one in found} <= known


def test_one_release_and_its_triton() -> None:
    (found,) = package_pins.find("vllm==0.26.0")
    assert found.torch == "2.11.0"
    (row,) = report.packages([found]).as_json()["rows"]
    assert [text for text, _ in row[:3]] == ["vllm 0.26.0", "2.11.0", "3.6.0"]


@pytest.mark.parametrize(("text", "hint"), [("vlm", "vllm"), ("vllm==0.26", "0.26.0")])
def test_what_is_not_there_is_an_error_with_the_nearest(text: str, hint: str) -> None:
    with pytest.raises(UsageError) as error:
        package_pins.find(text)
    assert any(hint in line for line in error.value.hints)


def test_the_kernels_that_a_release_has_in_it() -> None:
    found = {one.version: one.triton_kernels for one in package_pins.find("vllm")}
    assert (found["0.33.0"], found["0.20.2"], found["0.10.2"]) == ("v3.5.1", "v3.6.0", "")
    (row,) = report.packages(package_pins.find("vllm==0.33.0")).as_json()["rows"]
    assert row[-1][0] == "v3.5.1"
