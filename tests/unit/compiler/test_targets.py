from __future__ import annotations

import pytest

from tritonsmith.compiler import targets
from tritonsmith.compiler.targets import Target
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.facts import gpus
from tritonsmith.facts.gpus import Driver, Gpu, Gpus


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
        "cuda:\N{SUPERSCRIPT TWO}",
        "hip:942",
        "hip:gfx",
        "hip:gfx90",
        "hip:gfxabc",
        "hip:gfx942:x",
        "metal:1",
        "mi300",
    ],
)
def test_what_is_no_target(text: str) -> None:
    with pytest.raises(UsageError, match="is not a target") as caught:
        targets.parse(text)
    assert caught.value.hints[0] == "use cuda:90 or hip:gfx942"
    assert "mi300x" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("hip:gfx942:32", "waves of CDNA 3 GPUs have 64 lanes"),
        ("gfx90a:32", "waves of CDNA 2 GPUs have 64 lanes"),
        ("gfx1100:16", "waves of RDNA 3 GPUs have 32 or 64 lanes"),
        ("gfx1250:64", "waves of gfx1250 GPUs have 32 lanes"),
        ("gfx960:32", "waves of gfx960 GPUs have 64 lanes"),
        ("cuda:90:64", "warps of NVIDIA GPUs have 32 threads"),
    ],
)
def test_a_warp_that_a_gpu_does_not_have_is_told_why(text: str, says: str) -> None:
    with pytest.raises(UsageError, match="is not a target") as caught:
        targets.parse(text)
    assert says in caught.value.what
    rdna = any("RDNA" in hint for hint in caught.value.hints)
    assert rdna == ("have 64 lanes" in says), "who may have 32 is told where only 64 will do"


def test_gpus_that_are_still_to_come() -> None:
    """What no table knows is for the Triton to judge."""
    assert targets.parse("cuda:150") == Target("cuda", 150, 32)
    assert targets.parse("gfx960") == Target("hip", "gfx960", 64)
    assert targets.parse("gfx1310") == Target("hip", "gfx1310", 32)
    assert targets.parse("gfx1250-strict") == Target("hip", "gfx1250-strict", 32)


H100 = Gpu("nvidia", "NVIDIA H100 80GB HBM3", "9.0")


def test_native_is_what_is_here_each_once_with_its_name() -> None:
    here = Gpus(
        (
            H100,
            H100,
            Gpu("nvidia", "NVIDIA GeForce RTX 5090", "12.0"),
            Gpu("nvidia", "an older driver's", ""),
            Gpu("amd", "MI300X", "gfx942"),
            Gpu("amd", "Radeon RX 7900 XTX", "gfx1100"),
        )
    )
    assert targets.of_gpus(here) == {
        Target("cuda", 90, 32): "NVIDIA H100 80GB HBM3",
        Target("cuda", 120, 32): "NVIDIA GeForce RTX 5090",
        Target("hip", "gfx942", 64): "MI300X",
        Target("hip", "gfx1100", 32): "Radeon RX 7900 XTX",
    }


@pytest.mark.parametrize(
    ("here", "says"),
    [
        (Gpus(), "give a target: --target h100"),
        (Gpus(nvidia=Driver("570.1", problem="NVML: Driver/library version mismatch")), "version mismatch"),
        (
            Gpus((Gpu("amd", "an APU", ""),), amd=Driver()),
            "an APU does not report its architecture",
        ),
    ],
)
def test_native_without_a_gpu_says_why(here: Gpus, says: str) -> None:
    with pytest.raises(FactError, match="none was found") as caught:
        targets.of_gpus(here)
    assert says in str(caught.value)


def test_native_among_other_targets(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(gpus, "read", lambda: Gpus((H100,)))
    assert targets.parse_all(["mi300x", "Native", "h100"]) == (targets.parse("mi300x"), targets.parse("h100"))
    assert "native: cuda:90:32 (NVIDIA H100 80GB HBM3)" in capsys.readouterr().err


def test_an_amd_gpu_that_a_triton_does_not_know() -> None:
    said = "RuntimeError: PassManager::run failed\nk.py:8:1: error: unsupported target: 'gfx999'"
    first, *rest = targets.explained(said, targets.parse("gfx999"), "3.9.0").splitlines()
    assert rest == said.splitlines()
    assert first.startswith("Triton 3.9.0 does not support gfx999, only gfx906, ")
    assert first.endswith("; did you mean 'gfx950'?")
    assert "gfx906" not in targets.explained(said, targets.parse("gfx999"), "3.0.0")
    for target, other in (("h100", said), ("gfx999", "something else")):
        assert targets.explained(other, targets.parse(target), "3.9.0") == other


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


def test_a_target_is_asked_for_again_by_name_only_where_the_name_matters() -> None:
    spelled = {name: targets.parse(name).spelling() for name in ("h100", "h200", "sm_90", "rtx3090", "a10")}
    assert spelled == {
        "h100": "cuda:90:32",
        "h200": "h200",
        "sm_90": "cuda:90:32",
        "rtx3090": "rtx3090",
        "a10": "cuda:86:32",
    }
