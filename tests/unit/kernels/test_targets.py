from __future__ import annotations

import pytest

from tritonsmith.errors import UsageError
from tritonsmith.kernels import targets
from tritonsmith.kernels.targets import Target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("cuda:90", Target("cuda", 90, 32)),
        ("cuda:90:32", Target("cuda", 90, 32)),
        ("sm_90a", Target("cuda", 90, 32)),
        ("h100", Target("cuda", 90, 32)),
        (" B200", Target("cuda", 100, 32)),
        ("hip:gfx942", Target("hip", "gfx942", 64)),
        ("gfx90a", Target("hip", "gfx90a", 64)),
        ("hip:gfx1100", Target("hip", "gfx1100", 32)),
        ("hip:gfx1100:64", Target("hip", "gfx1100", 64)),
        ("mi300x", Target("hip", "gfx942", 64)),
    ],
)
def test_targets(text: str, target: Target) -> None:
    assert targets.parse(text) == target
    assert targets.parse(str(target)) == target


@pytest.mark.parametrize(
    "text",
    [
        "",
        "cuda",
        "cuda:",
        "cuda:sm_90",
        "cuda:90:x",
        "cuda:90:64",
        "gfx942:32",
        "cuda:\N{SUPERSCRIPT TWO}",
        "hip:942",
        "hip:gfx",
        "hip:gfx942:x",
        "metal:1",
        "mi300",
    ],
)
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(UsageError, match="is no target") as caught:
        targets.parse(text)
    assert caught.value.hints[0] == "write cuda:90 or hip:gfx942"
    assert "mi300x" in str(caught.value)


def test_the_nearest_name_is_named() -> None:
    with pytest.raises(UsageError, match="'h10'") as caught:
        targets.parse("h10")
    assert "did you mean 'h100'?" in caught.value.hints


def test_all_targets_each_once() -> None:
    every = targets.parse_all(["all"])
    assert Target("cuda", 90, 32) in every
    assert Target("hip", "gfx942", 64) in every
    assert len(set(every)) == len(every)
    assert targets.parse_all(["mi300x", "h100", "h200"]) == (targets.parse("mi300x"), targets.parse("h100"))


def test_the_default_targets_are_of_two_vendors() -> None:
    assert [target.backend for target in targets.default()] == ["cuda", "hip"]


@pytest.mark.parametrize(
    ("backends", "wanted"),
    [
        (("nvidia", "amd"), ["cuda:80:32"]),
        (("amd", "nvidia"), ["cuda:80:32"]),
        (("amd",), ["hip:gfx942:64"]),
        (("mine",), []),
    ],
)
def test_what_proves_a_build(backends: tuple[str, ...], wanted: list[str]) -> None:
    assert [str(target) for target in targets.proof(backends)] == wanted
