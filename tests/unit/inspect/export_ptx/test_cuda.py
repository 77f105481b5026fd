from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.inspect.export_ptx import samples
from tritonsmith.core.errors import FactError
from tritonsmith.inspect.export_ptx import cuda
from tritonsmith.inspect.export_ptx.compiled_kernel import CompiledKernel, KernelArgument

ATTRIBUTE = "cudaFuncSetAttribute(reduce, cudaFuncAttributeMaxDynamicSharedMemorySize, 98304)"
KERNEL = 'extern "C" __global__ void __launch_bounds__(128)'
NEW = {"global_scratch_size": 0, "profile_scratch_size": 0, "shared": 98304, "triton_version": "3.6.0"}


@pytest.fixture
def reduce(tmp_path: Path) -> CompiledKernel:
    """The sample, as Triton 3.6 would have compiled it from a signature."""
    made = samples.stored(tmp_path, samples.REDUCE, NEW)
    arguments = (
        KernelArgument("x_ptr", "*fp16"),
        KernelArgument("n", "i32"),
        KernelArgument("int", "i8"),  # a name that C++ keeps for itself
        KernelArgument("shared_memory", "fp64"),  # and one that the function has
    )
    return replace(made, arguments=arguments, source="/somewhere/kernels.py", triton="3.6.0")


def test_the_function(reduce: CompiledKernel) -> None:
    text = cuda.inline(reduce).function
    assert text.startswith(
        "__device__ __forceinline__ void reduce_inline("
        "__half* x_ptr, int n, signed char int_, double shared_memory_, void* shared_memory) {\n"
        '  asm volatile(\n    "{\\n\\t"\n'
    )
    assert text.endswith(
        '    "smith_l0_%=:\\n\\t"\n    "}"\n    :\n    : "l"(x_ptr), "r"(n), '
        '"h"(static_cast<unsigned short>(static_cast<unsigned char>(int_))), "d"(shared_memory_), '
        '"r"(static_cast<unsigned int>(__cvta_generic_to_shared(shared_memory)))\n    : "memory");\n}\n'
    )
    assert '".pragma \\"nounroll\\";\\n\\t"' in text


def test_nothing_of_the_frame_is_left(reduce: CompiledKernel) -> None:
    text = cuda.inline(reduce).function
    for gone in (
        ".loc",
        ".reqntid",
        ".param",
        ".section",
        ".debug",
        "//",
        "global_smem",
        "func_begin",
        "func_end",
    ):
        assert gone not in text


def test_every_percent_sign_is_doubled_or_an_operand(reduce: CompiledKernel) -> None:
    text = cuda.inline(reduce).function.replace("%%", "").replace("%=", "")
    assert set(text.split("%")[1:]) == {part for part in text.split("%")[1:] if part[0].isdigit()}


def test_the_header(reduce: CompiledKernel) -> None:
    text = cuda.cuh(cuda.inline(reduce))
    for line in (
        " * reduce of kernels.py, compiled by Triton 3.6.0.",
        " * target  sm_90a: nvcc -arch=sm_90a, from a CUDA that supports PTX 8.7",
        " * block   128 x 1 x 1 threads, all of which must call reduce_inline",
        " * grid    as for Triton; the kernel reads its program ids in no dimension",
        f" * shared  98304 bytes, dynamic: {ATTRIBUTE} first",
        "#include <cuda_fp16.h>",
        "extern __shared__ __align__(1024) unsigned char reduce_shared[];",
        f"{KERNEL} reduce(__half* x_ptr, int n, signed char int_, double shared_memory_) {{",
        "  reduce_inline(x_ptr, n, int_, shared_memory_, reduce_shared);",
    ):
        assert line in text.splitlines()


def test_scratch_that_the_kernel_does_not_use_is_no_parameter(reduce: CompiledKernel) -> None:
    made = cuda.inline(reduce)
    assert (reduce.scratch, made.scratch) == (("global_scratch", "profile_scratch"), ())


def test_scratch_that_it_uses_is_one_more(tmp_path: Path) -> None:
    text = samples.kernel(
        "ld.param.b64 %rd1, [k_param_1]; st.global.b32 [%rd1], %r1; ret;",
        params=".param .u64 .ptr .global .align 1 k_param_0, .param .u64 .ptr .global .align 1 k_param_1",
    )
    made = cuda.inline(samples.stored(tmp_path, text, {"global_scratch_size": 512, "shared": 0}))
    assert made.scratch == ("global_scratch",)
    assert "k_inline(void* arg0, void* global_scratch)" in made.function
    assert '"l"(global_scratch)' in made.function
    assert "scratch global_scratch: 512 bytes of global memory per block" in cuda.cuh(made)


def test_without_metadata_the_types_are_those_of_the_ptx(tmp_path: Path) -> None:
    params = ".param .u64 .ptr .global .align 1 a, .param .f32 b, .param .u64 c, .param .b16 d"
    text = samples.kernel("ld.param.b32 %r1, [b]; ret;", params=params)
    made = cuda.inline(samples.stored(tmp_path, text))
    head = cuda.cuh(made)
    assert "k_inline(void* arg0, float arg1, unsigned long long arg2, unsigned short arg3)" in made.function
    assert "types   from the PTX: the Python signature is unknown" in head
    assert "a Triton of unknown version" in head


def test_launch_bounds_and_flags(tmp_path: Path) -> None:
    directives = ".maxntid 64, 2, 1\n.minnctapersm 3\n.maxnreg 96"
    text = samples.kernel("mov.u32 %r1, %ctaid.z; mov.u32 %r2, %nctaid.x; ret;", directives=directives)
    head = cuda.cuh(cuda.inline(samples.stored(tmp_path, text, {"enable_fp_fusion": False})))
    assert "__launch_bounds__(128, 3)" in head
    assert "block   64 x 2 x 1 threads" in head
    assert "its program ids in x, z" in head
    assert "nvcc -arch=sm_90a -fmad=false -maxrregcount=96" in head


def test_scalars_of_half_precision_go_by_their_bits(tmp_path: Path) -> None:
    text = samples.kernel("ld.param.b16 %rs1, [k_param_0]; ret;", params=".param .b16 k_param_0")
    made = replace(samples.stored(tmp_path, text), arguments=(KernelArgument("eps", "bf16"),))
    head = cuda.cuh(cuda.inline(made))
    assert '"h"(__bfloat16_as_ushort(eps))' in head
    assert "#include <cuda_bf16.h>" in head


def test_constants_are_carried_along(tmp_path: Path) -> None:
    before = ".global .align 4 .b8 table[6] = {65, 144, 67}; .global .align 1 .b8 unused[2] = {1, 2};"
    text = samples.kernel("mov.b64 %rd1, table; cvta.global.u64 %rd2, %rd1; ret;", before=before)
    made = cuda.inline(samples.stored(tmp_path, text))
    assert made.function.startswith(
        "// table\nstatic __device__ __align__(4) unsigned char k_inline_0[6] = {65, 144, 67};\n\n"
    )
    assert '"l"(__cvta_generic_to_global(k_inline_0))' in made.function
    assert "unused" not in made.function


@pytest.mark.parametrize(
    "before",
    [
        ".global .align 8 .u64 table[1] = {other};",
        ".global .align 8 .u64 table[2][2] = {{1, 2}, {3, 4}};",
        ".global .align 4 .s32 table[1] = {-1};",
        ".const .align 4 .b32 table[1] = {1};",
        ".extern .global .align 4 .b32 table[1];",
    ],
)
def test_constants_that_cannot_be_carried(tmp_path: Path, before: str) -> None:
    text = samples.kernel("mov.b64 %rd1, table; ret;", before=before)
    with pytest.raises(FactError, match="cannot carry over the module's variable table") as caught:
        cuda.inline(samples.stored(tmp_path, text))
    assert str(caught.value.where).endswith("k.ptx:9")
