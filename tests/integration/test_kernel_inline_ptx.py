"""Kernels of the newest Triton as CUDA C++, which clang compiles and the wheel's ptxas assembles."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.integration.harness import LLVM, Smith, capture
from tests.support import require

HERE = Path(__file__).parent
CLANG = LLVM / "bin" / "clang++"
KERNELS = HERE / "inline_ptx" / "kernels.py"
STUBS = HERE / "inline_ptx" / "cuda_stubs.h"  # the words of CUDA C++ that a header uses; no toolkit is needed
SIGNATURES = {
    "vector_add": "*fp32:16,*fp32:16,*fp32:16,i32,1024",
    "softmax": "*fp32:16,*fp32:16,i32,i32,i32,1024",
    "matmul": "*fp16:16,*fp16:16,*fp16:16,i32,i32,i32:16,i32:16,i32:16,i32:16,64,64,32",
    "arcsine": "*fp32,*fp32,i32,128",
    "calling": "*fp32,*fp32",
}
GRANULE = 8  # registers: what a thread gets them in


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with an environment that has the newest Triton."""
    require(str(CLANG))
    root = tmp_path_factory.mktemp("in line")
    return with_wheel.beside(root)


def tools(smith: Smith) -> Path:
    """Folder of the wheel's ptxas and cuobjdump."""
    packages = next((smith.env("wheel") / "venv" / "lib").glob("python*/site-packages"))
    return packages / "triton" / "backends" / "nvidia" / "bin"


def header(smith: Smith, kernel: str, arch: int) -> tuple[Path, Path]:
    """The header of a kernel, and the folder that Triton compiled it into."""
    signature, out = SIGNATURES[kernel], smith.root / f"{kernel}-{arch}"
    flags = ("--signature", signature, "--target", f"cuda:{arch}")
    smith("kernel.compile", f"{KERNELS}:{kernel}", *flags, "--out", out)
    smith("kernel.inline-ptx", out, "--header", "--out", out / "inline.cuh")
    return out / "inline.cuh", out


def assembled(smith: Smith, source: str, arch: int, name: str) -> Path:
    """A cubin of CUDA C++: clang makes PTX of it and the wheel's ptxas takes that."""
    target = f"sm_{arch}a" if arch == 90 else f"sm_{arch}"
    file, ptx, cubin = (smith.root / f"{name}-{arch}.{end}" for end in ("cu", "ptx", "cubin"))
    file.write_text(source, encoding="utf-8")
    language = ("-x", "cuda", "--cuda-device-only", "-nocudalib", "-nocudainc", f"--cuda-gpu-arch={target}")
    version = ("-Xclang", "-target-feature", "-Xclang", "+ptx85", "-Wno-unknown-cuda-version")
    stubs = ("-include", STUBS, "-I", STUBS.parent)
    capture(CLANG, *language, *version, *stubs, "-O2", "-S", file, "-o", ptx)
    capture(tools(smith) / "ptxas", f"--gpu-name={target}", ptx, "-o", cubin)
    return cubin


def resources(smith: Smith, cubin: Path, kernel: str) -> dict[str, int]:
    """What cuobjdump says of a kernel: REG, STACK, SHARED ..."""
    text = capture(tools(smith) / "cuobjdump", "--dump-resource-usage", cubin)
    found = re.search(rf"Function {kernel}:\s*(.*)", text)
    assert found, text
    return {name: int(value) for name, value in re.findall(r"(REG|STACK|SHARED|LOCAL):(\d+)", found[1])}


def granules(registers: int) -> int:
    """How many times the least number of registers that is given out."""
    return -(-registers // GRANULE)


@pytest.mark.parametrize("arch", [80, 90])
@pytest.mark.parametrize("kernel", SIGNATURES)
def test_the_header_compiles_to_what_triton_s_own_does(smith: Smith, kernel: str, arch: int) -> None:
    path, out = header(smith, kernel, arch)
    inline = resources(smith, assembled(smith, f'#include "{path}"\n', arch, kernel), kernel)
    own = resources(smith, next(out.rglob("*.cubin")), kernel)
    assert inline["SHARED"] == own["SHARED"]
    assert inline["LOCAL"] == own["LOCAL"]
    assert abs(granules(inline["REG"]) - granules(own["REG"])) <= 1, (inline, own)


def test_the_block_twice_in_one_kernel(smith: Smith) -> None:
    """Labels and registers of the two copies do not meet."""
    path, _ = header(smith, "softmax", 80)
    twice = """
extern "C" __global__ void twice(float* a, float* b, float* c, int n) {
  softmax_inline(b, a, n, n, n, softmax_shared);
  softmax_inline(c, b, n, n, n, softmax_shared);
}
"""
    cubin = assembled(smith, f'#include "{path}"\n{twice}', 80, "twice")
    assert resources(smith, cubin, "twice")["REG"] > 0


def test_a_kernel_s_file_is_compiled_on_the_way(smith: Smith) -> None:
    """In the folder that is its default, which tests of kernel.aot use for their `vector_add` meanwhile."""
    flags = ("--signature", SIGNATURES["arcsine"], "--target", "cuda:80")
    text = smith("kernel.inline-ptx", f"{KERNELS}:arcsine", *flags).out
    assert "__device__ __forceinline__ void arcsine_inline(float* x_ptr, " in text


def test_a_function_of_registers_goes_back_into_triton(smith: Smith) -> None:
    out = smith.root / "calling"
    flags = ("--signature", SIGNATURES["calling"], "--target", "cuda:80")
    smith("kernel.compile", f"{KERNELS}:calling", *flags, "--out", out)
    text = smith("kernel.inline-ptx", out, "--elementwise").out
    names = {
        node.targets[0].id: ast.literal_eval(node.value)
        for node in ast.parse(text).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    again = smith.root / "again.py"
    again.write_text(
        "import triton\nimport triton.language as tl\n\n@triton.jit\ndef again(x_ptr, y_ptr):\n"
        "    at = tl.arange(0, 128)\n    x = tl.load(x_ptr + at)\n"
        f"    y = tl.inline_asm_elementwise({names['ASM']!r},\n"
        f"        {names['CONSTRAINTS']!r}, [x, x], tl.float32, True, 1)\n"
        "    tl.store(y_ptr + at, y)\n",
        encoding="utf-8",
    )
    smith("kernel.compile", again, *flags, "--out", smith.root / "again")
    ptx = next((smith.root / "again").rglob("*.ptx")).read_text(encoding="utf-8")
    assert "fma.rn.f32 \t%smith_r" in ptx or "fma.rn.f32 %smith_" in ptx


def test_a_tensor_map_is_refused(smith: Smith) -> None:
    out = smith.root / "described"
    flags = ("--signature", "*fp16:16,i32,i32:16,64,64", "--target", "cuda:90")
    smith("kernel.compile", f"{KERNELS}:described", *flags, "--out", out)
    error = smith("kernel.inline-ptx", out, "--header", code=1).error
    assert "described cannot be inlined: tensor maps" in error
    assert re.search(r"line \d+: .*tensormap|line \d+: .*cp\.async\.bulk\.tensor", error)


def test_wrong_flags(smith: Smith) -> None:
    for flags, text in (
        (("--header", "--elementwise"), "omit one of them"),
        (("--function", "f"), "--function requires --elementwise"),
        (("--signature", "i32"), "this kernel is already compiled"),
    ):
        assert text in smith("kernel.inline-ptx", "x.ptx", *flags, code=2).error
    assert "cannot read this PTX" in smith("kernel.inline-ptx", "x.ptx", code=1).error
