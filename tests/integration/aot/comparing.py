"""Upstream's own C sources, made without a GPU, and what of two sources has to be the same, byte by byte."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
KERNELS = HERE.parents[2] / "examples" / "aot" / "kernels.py"
VECTOR_ADD = (
    "*fp32:16,*fp32:16,*fp32:16,fp32,i32:16,1024",
    "*fp32,*fp32,*fp32,fp32,i32,1024",
    "*fp32:16,*fp32:16,*fp32:16,fp32,i32:16,512",
)
MATMUL = (  # the first takes more shared memory than a kernel gets unasked; the last compiles quickly
    "*fp16:16,*fp16:16,*fp32:16,i32,i32,i32,i32:16,i32:16,i32:16,128,64,64",
    "*fp16,*fp16,*fp32,i32,i32,i32,i32,i32,i32,128,64,64",
    "*fp16:16,*fp16:16,*fp32:16,i32,i32,i32,i32:16,i32:16,i32:1,32,32,32",
)
GRIDS = {"vector_add": "(n+1023)/1024,1,1", "matmul": "(m+63)/64,(n+63)/64,1"}
SIGNATURES = {"vector_add": VECTOR_ADD, "matmul": MATMUL}
WARPS, STAGES = "4", "3"


class Tools:
    """A process that has imported a Triton, and runs upstream's tools in forks of it.

    Attributes:
        errors: file with what they say.
    """

    def __init__(self, process: subprocess.Popen[str], errors: Path) -> None:
        self._process = process
        self.errors = errors

    def run(self, *argv: str | Path) -> None:
        """One command line, which must succeed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(list(map(str, argv))) + "\n")
        self._process.stdin.flush()
        code = self._process.stdout.readline()
        assert code == "0\n", f"{argv} ended with {code!r}\n{self.errors.read_text(encoding='utf-8')}"


@contextmanager
def tools(python: Path, work: Path) -> Iterator[Tools]:
    """Upstream's tools of the Triton of an interpreter; their cache is below a folder."""
    work.mkdir(parents=True, exist_ok=True)
    environ = {**os.environ, "TRITON_CACHE_DIR": str(work / "cache"), "TRITON_HOME": str(work)}
    argv = (python, "-W", "ignore", HERE / "upstream.py")
    with (
        (work / "errors").open("w") as errors,
        subprocess.Popen(
            argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        yield Tools(process, work / "errors")


@dataclass(frozen=True)
class Upstream:
    """Upstream's tools, told that a GPU is there.

    Attributes:
        tools: that run them.
        target: `cuda:90:32`.
    """

    tools: Tools
    target: str

    def __call__(self, module: str, *flags: str | Path) -> None:
        self.tools.run(*self.target.split(":"), module, *flags)

    def compile(self, kernel: str, out: Path) -> list[Path]:
        """The headers, in the order of the signatures; the sources lie beside them."""
        out.mkdir(parents=True)
        found: list[Path] = []
        for text in SIGNATURES[kernel]:
            flags = ("-n", kernel, "-w", WARPS, "-ns", STAGES, "-s", text, "-g", GRIDS[kernel])
            self("triton.tools.compile", KERNELS, *flags, "-o", out / kernel)
            found += [path for path in out.glob("*.h") if path not in found]
        return found

    def link(self, headers: Sequence[Path], out: Path) -> None:
        """The dispatcher: OUT.h and OUT.c."""
        out.parent.mkdir(parents=True, exist_ok=True)
        self("triton.tools.link", *headers, "-o", out)


def ours(kernel: str) -> tuple[str | Path, ...]:
    """Flags that ask `kernel.aot` for the same."""
    signatures = [word for text in SIGNATURES[kernel] for word in ("--signature", text)]
    options = ("--num-warps", WARPS, "--num-stages", STAGES, "--grid", GRIDS[kernel])
    return (f"{KERNELS}:{kernel}", *signatures, *options)


def declarations(path: Path) -> str:
    """What a header declares, and its lines for the linker.

    Not compared: comments but `// tt-linker: ...`, preprocessor lines, `extern "C"`, the two types that the
    dispatcher's header defines, empty lines, and `()` where we write `(void)`.
    """
    text = re.sub(r"/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r'#ifdef __cplusplus\n(?:extern "C" {|})\n#endif', "", text)
    kept = [line.rstrip() for line in text.splitlines() if line.strip() and not line.startswith("#")]
    kept = [line for line in kept if not line.startswith("//") or line.startswith("// tt-linker: ")]
    kept = [line for line in kept if not line.startswith("typedef")]
    return "\n".join(kept).replace("()", "(void)")


@dataclass(frozen=True)
class Content:
    """What a source of a variant holds.

    Attributes:
        binary: the bytes of the array.
        symbol: name of the kernel in it.
        prototype: of the function that launches.
        grid: three expressions.
        pointers: the array of arguments.
        launch: blocks, threads and shared memory as the launch has them.
    """

    binary: bytes
    symbol: str
    prototype: str
    grid: tuple[str, ...]
    pointers: str
    launch: str


def content(path: Path) -> Content:
    """The parts of a source that are the same.

    Not compared: everything else. In the pointers our `x_fp32`, the packed `x`, counts as `x`.
    """
    text = path.read_text(encoding="utf-8")
    data = _only(r"unsigned char \w+\[\d+\] = \{([^}]*)\};", text)
    grid = tuple(_only(rf"unsigned int g{name} = (.*);", text).strip() for name in "XYZ")
    pointers = _only(r"void \*args\[\d*\] = \{(.*)\};", text).strip()
    prototype = _only(r"^(\w+ \w+\(\w+ stream.*\)) \{", text)
    return Content(
        binary=bytes(int(word, 16) for word in data.split(",")),
        symbol=_only(r'GetFunction\(.*"(\w+)"\)', text),
        prototype=prototype,
        grid=grid,
        pointers=re.sub(r"_fp32\b", "", pointers),
        launch=_only(r"LaunchKernel\(\w+, (.*), stream, args, (?:NULL|nullptr)\);", text),
    )


def _only(pattern: str, text: str) -> str:
    (found,) = re.findall(pattern, text, flags=re.MULTILINE)
    return str(found)
