from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.inspect.export_ptx import cuda
from tritonsmith.inspect.export_ptx.compiled_kernel import UnsupportedPtxError

BULK = ".shared::cluster.global.mbarrier::complete_tx::bytes"
INSTRUCTIONS = [
    (
        "tensor maps",
        f"cp.async.bulk.tensor.2d{BULK} [%r1], [%rd1, {{%r2, %r3}}], [%r4]",
    ),
    (
        "tensor maps",
        "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%rd1, {%r2, %r3}], [%r4]",
    ),
    ("tensor maps", "cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%rd1, {%r2, %r3}]"),
    ("tensor maps", "tensormap.replace.tile.rank.shared::cta.b1024.b32 [%rd1], 0x1"),
    ("tensor maps", "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 0x80"),
    ("tensor maps", "prefetch.tensormap [%rd1]"),
    ("clusters", "barrier.cluster.arrive.aligned"),
    ("clusters", "mapa.shared::cluster.u32 %r1, %r2, %r3"),
    ("clusters", "getctarank.shared::cluster.u32 %r1, %r2"),
    ("clusters", "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %r2, [%r3]"),
    ("clusters", "mov.u32 %r1, %cluster_ctarank"),
    ("clusters", "mov.u32 %r1, %clusterid.x"),
    ("clusters", "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 %p1, %rd1"),
    (
        "clusters",
        f"cp.async.bulk{BULK}.multicast::cluster [%r1], [%rd1], 16, [%r2], %rs1",
    ),
    ("clusters", "tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [%r1], 128"),
    ("warps that trade registers", "setmaxnreg.dec.sync.aligned.u32 40"),
    ("calls", "call.uni (retval0), vprintf, (param0, param1)"),
    ("memory on the stack of variable size", "alloca.u64 %rd1, %rd2, 8"),
    ("textures and surfaces", "tex.2d.v4.f32.s32 {%r1, %r2, %r3, %r4}, [%rd1, {%r5, %r6}]"),
]


@pytest.mark.parametrize(("what", "text"), INSTRUCTIONS)
def test_the_instruction_and_its_line_are_named(tmp_path: Path, what: str, text: str) -> None:
    with pytest.raises(UnsupportedPtxError, match=f"k cannot be inlined: {what}") as caught:
        cuda.inline(samples.stored(tmp_path, samples.kernel(f"mov.b32 %r1, 0;\n@%p1 {text};\nret;")))
    assert str(caught.value.where) == f"{tmp_path / 'k.ptx'}:15"
    assert f"line 15: @%p1 {text}" in str(caught.value.why)


@pytest.mark.parametrize(
    "text",
    [
        "wgmma.fence.sync.aligned",
        f"cp.async.bulk{BULK} [%r1], [%rd1], 16, [%r2]",
        "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r1], 16",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 128",
        "fence.mbarrier_init.release.cluster",
        "griddepcontrol.wait",
    ],
)
def test_what_looks_alike_and_is_one_block_s_own_business_is_inlined(tmp_path: Path, text: str) -> None:
    assert (
        text.partition(" ")[0]
        in cuda.inline(samples.stored(tmp_path, samples.kernel(f"{text}; ret;"))).function
    )


@pytest.mark.parametrize(
    "directive", [".reqnctapercluster 2", ".explicitcluster", ".maxclusterrank 8", ".blocksareclusters"]
)
def test_directives_of_clusters(tmp_path: Path, directive: str) -> None:
    text = samples.kernel("ret;", directives=f".reqntid 128\n{directive}")
    with pytest.raises(UnsupportedPtxError, match="clusters") as caught:
        cuda.inline(samples.stored(tmp_path, text))
    assert f"line 12: {directive}" in str(caught.value.why)
    assert "num_ctas=1" in str(caught.value)


def test_a_tensor_map_as_a_parameter(tmp_path: Path) -> None:
    text = samples.kernel("ret;", params=".param .align 64 .b8 k_param_0[128],\n.param .u32 k_param_1")
    with pytest.raises(UnsupportedPtxError, match="tensor maps") as caught:
        cuda.inline(samples.stored(tmp_path, text))
    assert "line 10: .param .b8 k_param_0[128]" in str(caught.value.why)


def test_the_address_of_a_parameter(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedPtxError, match="a name declared outside"):
        cuda.inline(samples.stored(tmp_path, samples.kernel("mov.b64 %rd1, k_param_0; ret;")))


@pytest.mark.parametrize("text", [".calltargets a, b;", ".global .b32 counter;"])
def test_what_belongs_to_a_module(tmp_path: Path, text: str) -> None:
    with pytest.raises(UnsupportedPtxError, match="k cannot be inlined"):
        cuda.inline(samples.stored(tmp_path, samples.kernel(f"{text} ret;")))


def test_of_many_the_first_are_shown_and_the_rest_are_counted(tmp_path: Path) -> None:
    body = "barrier.cluster.arrive;\n" * 8 + "setmaxnreg.inc.sync.aligned.u32 240; ret;"
    with pytest.raises(UnsupportedPtxError, match="clusters, warps that trade registers") as caught:
        cuda.inline(samples.stored(tmp_path, samples.kernel(body)))
    assert str(caught.value.why).splitlines()[-1] == "and 4 more"
