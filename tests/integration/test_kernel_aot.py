"""`kernel.aot` with the newest wheel: its C beside that of upstream's own tools, compiled, linked and run."""

from __future__ import annotations

import itertools
import json
import math
import re
import struct
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.integration.aot import comparing
from tests.integration.aot.comparing import GRIDS, KERNELS, VECTOR_ADD, Tools, Upstream
from tests.integration.harness import Smith, capture
from tests.support import require_c
from tritonsmith.inspect import export_c as emit

EXAMPLE = KERNELS.parent
TARGETS = {"cuda": "cuda:90:32", "hip": "hip:gfx942:64"}
HEADERS = {"cuda": "nvidia", "hip": "amd"}
FLAGS = ("-std=c11", "-Wall", "-Werror")


@pytest.fixture(scope="module")
def smith(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> Smith:
    """The tool, with an environment that has the newest Triton."""
    require_c()
    root = tmp_path_factory.mktemp("ahead of time")
    return with_wheel.beside(root)


@pytest.fixture(scope="module")
def tools(smith: Smith) -> Iterator[Tools]:
    """Upstream's own."""
    with comparing.tools(smith.env("wheel") / "venv/bin/python", smith.root / "upstream") as started:
        yield started


def includes(smith: Smith, backend: str) -> tuple[str | Path, ...]:
    """Flags that find the wheel's headers of a driver."""
    packages = next((smith.env("wheel") / "venv" / "lib").glob("python*/site-packages"))
    return ("-isystem", packages / "triton" / "backends" / HEADERS[backend] / "include")


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((kernel, backend), marks=pytest.mark.slow if kernel == "matmul" else ())
        for kernel in GRIDS
        for backend in TARGETS
    ],
)
def both(
    request: pytest.FixtureRequest, smith: Smith, tools: Tools
) -> tuple[str, str, Path, Path, list[Path]]:
    """A kernel, a backend, our folder, upstream's folder, and the headers of its variants in order."""
    kernel, backend = request.param
    root = smith.root / f"{kernel}-{backend}"
    upstream = Upstream(tools, TARGETS[backend])
    headers = upstream.compile(kernel, root / "theirs")
    upstream.link(headers, root / "theirs" / kernel)
    smith(
        "kernel.aot", *comparing.ours(kernel), "--target", TARGETS[backend], "--check", "--out", root / "ours"
    )
    upstream.link([root / "ours" / path.name for path in headers], root / "linked" / kernel)
    return kernel, backend, root / "ours", root / "theirs", headers


Both = tuple[str, str, Path, Path, list[Path]]


def test_the_same_files(both: Both) -> None:
    _, _, mine, theirs, _ = both
    assert {path.name for path in mine.iterdir()} == {path.name for path in theirs.iterdir()}


def test_headers_declare_the_same_byte_by_byte(both: Both) -> None:
    kernel, _, mine, _, headers = both
    for path in (*headers, headers[0].with_name(f"{kernel}.h")):
        assert comparing.declarations(mine / path.name) == comparing.declarations(path)


def test_sources_hold_the_same_binary_grid_and_arguments(both: Both) -> None:
    _, _, mine, _, headers = both
    for path in headers:
        name = path.with_suffix(".c").name
        assert comparing.content(mine / name) == comparing.content(path.with_name(name))


def test_upstreams_linker_makes_the_same_of_our_headers_byte_by_byte(both: Both) -> None:
    kernel, _, mine, theirs, _ = both
    for suffix in ("c", "h"):
        name = f"{kernel}.{suffix}"
        assert (mine.parent / "linked" / name).read_bytes() == (theirs / name).read_bytes()


def test_a_c_compiler_sees_no_conflict_between_the_headers(both: Both, smith: Smith) -> None:
    kernel, backend, mine, theirs, headers = both
    names = [kernel, *(path.stem for path in headers)]
    text = "".join(f'#include "{folder}/{name}.h"\n' for name in names for folder in (theirs, mine))
    file = mine.parent / "conflict.c"
    file.write_text(text)
    capture("cc", *FLAGS, *includes(smith, backend), "-fsyntax-only", file)


@pytest.fixture(scope="module")
def mixed(smith: Smith, tools: Tools) -> tuple[Path, list[Path]]:
    """A folder with our files and upstream's, and upstream's headers."""
    root = smith.root / "mixed"
    upstream = Upstream(tools, "cuda:90:32")
    headers = upstream.compile("vector_add", root / "theirs")
    upstream.link(headers, root / "theirs" / "vector_add")
    smith("kernel.aot", *comparing.ours("vector_add"), "--target", "h100", "--out", root / "ours")
    return root, headers


@pytest.mark.slow
@pytest.mark.parametrize("scale", ["0.0", "2.5"])
def test_code_for_upstreams_links_and_launches_the_same(
    smith: Smith, mixed: tuple[Path, list[Path]], scale: str
) -> None:
    """All four mixes of our and upstream's files, on a driver that says what it is asked."""
    root, headers = mixed
    said = {}
    for dispatcher in ("ours", "theirs"):
        for variants in ("ours", "theirs"):
            program = root / f"{dispatcher}-{variants}"
            sources = [root / variants / path.with_suffix(".c").name for path in headers]
            files = [root / dispatcher / "vector_add.c", *sources, comparing.HERE / "calls.c"]
            defines = ("-DPARAMETERS=7", f"-DSCALE={scale}", f"-I{root / dispatcher}", f"-I{root / variants}")
            # upstream's launcher ends without a value where the grid is empty
            warnings = ("-w",) if "theirs" in (dispatcher, variants) else FLAGS
            fake = comparing.HERE / "fake_cuda.c"
            capture("cc", *warnings, *defines, *includes(smith, "cuda"), "-o", program, *files, fake)
            said[dispatcher, variants] = capture(program)
    assert said["ours", "ours"] == said["theirs", "ours"]
    assert said["ours", "theirs"] == said["theirs", "theirs"]
    assert said["ours", "ours"].count("<<<") == 3 + 2 + 2 + 2 + 2
    if scale == "0.0":
        assert said["ours", "ours"] == said["theirs", "theirs"]
        return
    # The kernel reads four bytes, and upstream since 3.4 passes the address of a double.
    assert " 00002040 " in said["ours", "ours"]
    assert " 00000000 " in said["theirs", "theirs"]
    assert said["ours", "ours"].replace(" 00002040 ", " 00000000 ") == said["theirs", "theirs"]


@pytest.mark.slow
def test_the_example_builds(smith: Smith) -> None:
    out = smith.root / "example"
    for kernel, grid, signatures, sweeps in (
        (
            "vector_add",
            "(n+BLOCK-1)/BLOCK",
            ("*fp32:16,*fp32:16,*fp32:16,fp32,i32:16", "*fp32,*fp32,*fp32,fp32,i32"),
            ("BLOCK=512,1024",),
        ),
        (
            "matmul",
            "(m+BLOCK_M-1)/BLOCK_M,(n+BLOCK_N-1)/BLOCK_N",
            (
                "*fp16:16,*fp16:16,*fp32:16,i32,i32,i32,i32:16,i32:16,i32:16,BLOCK_K=32",
                "*fp16,*fp16,*fp32,i32,i32,i32,i32,i32,i32,BLOCK_K=32",
            ),
            ("BLOCK_M=32,64", "BLOCK_N=32"),
        ),
    ):
        words = [word for text in signatures for word in ("--signature", text)]
        words += [word for text in sweeps for word in ("--sweep", text)]
        words += ["--target", "h100", "--grid", grid, "--json"]
        done = smith("kernel.aot", f"{KERNELS}:{kernel}", *words, "--out", out)
        told = json.loads(done.out)
        assert [len(one["algorithms"]) for one in told["targets"]] == [2]
        assert len(told["targets"][0]["variants"]) == 4
    stub = smith.root / "libcuda.so.1"
    capture("cc", "-shared", "-fPIC", "-o", stub, EXAMPLE / "stub_libcuda.c")
    files = [EXAMPLE / "main.c", *sorted(out.glob("*.c"))]
    capture("cc", *FLAGS, f"-I{out}", *includes(smith, "cuda"), "-o", out / "main", *files, stub, "-lm")
    assert (out / "main").stat().st_size > 0


@pytest.mark.slow
def test_a_folder_of_compiled_points(smith: Smith) -> None:
    flags = ("--signature", VECTOR_ADD[1].replace(",1024", ""), "--target", "h100", "--target", "gfx90a")
    smith("kernel.compile", f"{KERNELS}:vector_add", *flags, "--sweep", "BLOCK=64,128", "--out", "points")
    done = smith("kernel.aot", "points", "--grid", "(n+BLOCK-1)/BLOCK", "--out-name", "axpy", "--check")
    assert "axpy_" in done.out
    made = smith.root / "points.aot"
    assert sorted(path.name for path in made.iterdir()) == ["cuda-90-32", "hip-gfx90a-64"]
    texts = [path.read_text(encoding="utf-8") for path in sorted(made.glob("cuda-90-32/axpy.*_.c"))]
    grids = sorted(grid for text in texts for grid in re.findall(r"gX = (.*);", text))
    assert grids == ["(n+128-1)/128", "(n+64-1)/64"]
    smith("kernel.aot", "points", "--grid", "n", "--point", "cuda-90-32,BLOCK=64", "--out", "one")
    assert len(list((smith.root / "one").iterdir())) == 4


def test_a_dry_run_writes_nothing(smith: Smith) -> None:
    flags = ("--signature", VECTOR_ADD[1], "--target", "h100")
    smith("kernel.compile", f"{KERNELS}:vector_add", *flags, "--out", "dry")
    done = smith("kernel.aot", "dry", "--grid", "n", "--check", "--dry-run")
    assert "vector_add.24b126ff_.c" in done.out
    assert " -c -o " in done.out
    assert not (smith.root / "dry.aot").exists()
    done = smith("kernel.aot", f"{KERNELS}:vector_add", *flags, "--grid", "n", "--dry-run")
    assert re.search(r"worker'? compile\b", done.out)


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--grid", "count"), "which the kernel does not have"),
        (("--grid", "n,1,1,1"), "has 4 parts"),
        (("--grid", "n//4"), "start a comment"),
        (("--grid", "(n"), "parentheses"),
        (("--grid", "n;exit(1)"), "not part of an expression"),
        (("--grid", "n", "--out-name", "a-b"), "--out-name cannot be"),
        (("--grid", "n", "--point", "x"), "--point chooses among compiled points"),
        ((), "--grid is missing"),
        (("--grid", "n", "--sweep", "num_ctas=1", "--sweep", "maxnreg=64,128"), "have the same name in C"),
    ],
)
def test_what_makes_no_sense_is_one_error(smith: Smith, flags: tuple[str, ...], text: str) -> None:
    signature = ("--signature", VECTOR_ADD[1], "--target", "h100")
    code = 2
    done = smith("kernel.aot", f"{KERNELS}:vector_add", *signature, *flags, "--out", "wrong", code=code)
    assert text in done.error
    assert not (smith.root / "wrong").exists()


@pytest.mark.slow
def test_a_compiler_that_refuses_is_told(smith: Smith, tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text("#!/bin/sh\necho 'broken.c:1: error: no' >&2\nexit 1\n")
    broken.chmod(0o755)
    other = replace(smith, more={"CC": str(broken)})
    flags = ("--signature", VECTOR_ADD[1], "--target", "h100", "--grid", "n")
    done = other("kernel.aot", f"{KERNELS}:vector_add", *flags, "--check", code=1)
    assert "broken.c:1: error: no" in done.error
    broken.write_text("#!/bin/sh\necho 'cuda.h:56:10: fatal error: stdlib.h: No such file' >&2\nexit 1\n")
    done = other("kernel.aot", f"{KERNELS}:vector_add", *flags, "--check", code=1)
    assert "apt install libc6-dev" in done.error
    nowhere = replace(smith, more={"CC": "no-such-compiler"})
    done = nowhere("kernel.aot", f"{KERNELS}:vector_add", *flags, "--check", code=1)
    assert "needs a C compiler" in done.error


def test_halves_are_packed_as_tritons_launcher_does(smith: Smith) -> None:
    """Every half and the middle between each two, and their neighbours; every upper half of a float."""
    folder = Path(emit.__file__).with_name("c_templates")
    program = smith.root / "packing"
    text = "".join((folder / name).read_text(encoding="utf-8") for name in ("half.c", "bfloat.c"))
    (smith.root / "packing.c").write_text(
        "#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n" + text + "int main(void) {\n"
        "double one; while (fread(&one, sizeof one, 1, stdin) == 1) {\n"
        "uint16_t made[] = {pack_fp16(one), pack_bf16(one)}; fwrite(made, sizeof made, 1, stdout); }\n"
        "return 0; }\n"
    )
    capture("cc", *FLAGS, "-o", program, smith.root / "packing.c")
    halves = [value for (value,) in struct.iter_unpack("<e", struct.pack("<31744H", *range(0x7C00)))]
    middles = [(left + right) / 2 for left, right in itertools.pairwise(halves)]
    positive = [*halves, *middles, 65519.999, *(math.nextafter(one, 0) for one in middles)]
    positive += [math.nextafter(one, math.inf) for one in middles]
    values = [*positive, *(-one for one in positive)]
    done = subprocess.run(
        program, input=struct.pack(f"<{len(values)}d", *values), capture_output=True, check=True
    ).stdout
    made = struct.unpack(f"<{2 * len(values)}H", done)
    wanted = [struct.unpack("<H", struct.pack("<e", value))[0] for value in values]
    assert list(made[::2]) == wanted
    upper = [struct.unpack("<I", struct.pack("<f", value))[0] >> 16 for value in values]
    assert list(made[1::2]) == upper
    huge = (65520.0, -1e300, math.inf, -math.inf)
    beyond = subprocess.run(program, input=struct.pack("<4d", *huge), capture_output=True, check=True).stdout
    assert struct.unpack("<8H", beyond)[::2] == (0x7C00, 0xFC00, 0x7C00, 0xFC00)
