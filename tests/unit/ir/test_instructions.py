"""Instructions by class, from lines as nvdisasm and llvm-objdump write them."""

from __future__ import annotations

import re

import pytest

from tritonsmith.core import configs
from tritonsmith.ir.normalize import assembly

SASS = """\
\t.section\t.text.kern,"ax",@progbits
kern:
.text.kern:
\t//## File "kernels.py", line 13
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/              @!P0 LDG.E.128.CONSTANT R4, desc[UR4][R2.64] ;
        /*0020*/              @UP1 UIADD3 UR4, UR4, 0x1, URZ ;
        /*0030*/                   HGMMA.64x128x16.F32 R24, gdesc[UR8], R24 ;
.L_x_1:
        /*10040*/                  STS.U16 [R3], R4 ;
        /*10050*/                  BAR.SYNC.DEFER_BLOCKING 0x0 ;
"""
AMD = """\
0000000000001700 <kern>:
; kernels.py:13
\ts_load_dwordx2 s[6:7], s[4:5], 0x0                         // 000000001700: C0060182 00000000
\tbuffer_load_dword v3, off, s[24:27], 0 offset:128          // 000000001878: E0500080 80060300
\tbuffer_load_dwordx4 v[4:7], v3, s[8:11], 0 offen           // 000000001880: E05C1000 80020403
\tv_mfma_f32_32x32x8_f16 a[0:15], v[4:5], v[6:7], a[0:15]    // 000000001888: D3CD8000 04020D04
\tv_add_f32_e32 v1, v2, v3                                   // 000000001890: 02020702
"""


def test_sass() -> None:
    assert assembly.count(SASS, "sass") == {
        "all": 6,
        "tensor core": 1,
        "global load 128": 1,
        "shared store 16": 1,
        "constant load": 1,
        "barrier": 1,
        "other": 1,
    }


def test_amd_with_scratch_memory_apart() -> None:
    assert assembly.count(AMD, "amd") == {
        "all": 5,
        "matrix core": 1,
        "scratch load 32": 1,
        "global load 128": 1,
        "scalar load": 1,
        "fp arithmetic": 1,
    }


@pytest.mark.parametrize(
    ("mnemonic", "name"),
    [
        ("HMMA.16816.F32", "tensor core"),
        ("IMMA.16832.S8.S8", "tensor core"),
        ("UTCHMMA", "tensor core"),
        ("UTCQMMA.2CTA", "tensor core"),
        ("QMMA.16832.F32.E4M3.E4M3", "tensor core"),
        ("LDSM.16.M88.4", "matrix load"),
        ("LDTM.x32", "matrix load"),
        ("LDGSTS.E.BYPASS.128", "async copy"),
        ("UTMALDG.2D", "async copy"),
        ("UBLKCP.S.G", "async copy"),
        ("LDG.E", "global load 32"),
        ("LDG.E.U8", "global load 8"),
        ("STG.E.64", "global store 64"),
        ("LDS.64", "shared load 64"),
        ("STL.S16", "local store 16"),
        ("LDL.LU.64", "local load 64"),
        ("ULDC.64", "constant load"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU", "atomic"),
        ("ATOMG.E.CAS.STRONG.GPU", "atomic"),
        ("F2FP.F16.F32.PACK_AB", "conversion"),
        ("I2FP.F32.S32", "conversion"),
        ("F2F.F64.F32", "conversion"),
        ("I2F.F64", "conversion"),
        ("SHFL.BFLY", "shuffle"),
        ("REDUX.SUM", "shuffle"),
        ("SYNCS.PHASECHK.TRANS64.TRYWAIT", "barrier"),
        ("WARPGROUP.DEPBAR.LE", "barrier"),
        ("MUFU.EX2", "special function"),
        ("FFMA.FTZ", "fp arithmetic"),
        ("HFMA2.MMA", "fp arithmetic"),
        ("DADD", "fp arithmetic"),
        ("FSETP.GT.AND", "fp arithmetic"),
        ("EXIT", "branch"),
        ("NOP", "padding"),
        ("IMAD.MOV.U32", "other"),
    ],
)
def test_classes_of_sass(mnemonic: str, name: str) -> None:
    assert assembly.class_of(mnemonic, "sass") == name


@pytest.mark.parametrize(
    ("mnemonic", "name"),
    [
        ("v_wmma_f32_16x16x16_f16", "matrix core"),
        ("v_smfmac_f32_16x16x32_f16", "matrix core"),
        ("v_swmmac_f32_16x16x32_f16", "matrix core"),
        ("v_accvgpr_write_b32", "accumulator move"),
        ("global_load_lds_dword", "async copy"),
        ("global_load_dwordx4", "global load 128"),
        ("global_load_d16_u8", "global load 8"),
        ("global_load_ushort", "global load 16"),
        ("flat_store_b96", "global store 96"),
        ("ds_read2st64_b32", "shared load 64"),
        ("ds_load_2addr_b64", "shared load 64"),
        ("ds_write_b128", "shared store 128"),
        ("scratch_store_b64", "scratch store 64"),
        ("ds_bpermute_b32", "shuffle"),
        ("global_atomic_add_f32", "atomic"),
        ("v_cvt_pkrtz_f16_f32", "conversion"),
        ("v_cvt_f16_f32_e32", "conversion"),
        ("s_waitcnt", "barrier"),
        ("v_exp_f32_e32", "special function"),
        ("v_pk_fma_f32", "fp arithmetic"),
        ("v_dot2_f32_f16", "fp arithmetic"),
        ("s_cbranch_execz", "branch"),
        ("s_code_end", "padding"),
        ("v_lshl_add_u64", "other"),
    ],
)
def test_classes_of_amd(mnemonic: str, name: str) -> None:
    assert assembly.class_of(mnemonic, "amd") == name


@pytest.mark.parametrize("language", ["sass", "amd"])
def test_the_configuration_is_whole(language: str) -> None:
    table = configs.load("kernel-resources")
    assert table["widths"][language][-1][0] == "", "every mnemonic has a width"
    for row in table[language]:
        assert set(row) <= {"class", "names", "width"}
        re.compile(row["names"])
    names = assembly.names(language)
    assert len(names) == len(set(names))
