"""For `debug-library`: a mini-Triton on an LLVM that has small libraries more, with their sources."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.integration.harness import HERE, LLVM, Smith, capture, plant, ready, require_llvm
from tests.support import made_once

SOURCES = HERE / "mini_libraries" / "sources"
ANSWER = "blue; gold has number 79\n"
_FILES = {
    "LLVMMini": ("Metals.cpp",),
    "MLIRMini": ("Quotient.cpp", "Twice.cpp"),
    "MLIRMiniMany": ("Down.cpp", "East.cpp", "Inner.cpp", "North.cpp", "South.cpp", "Up.cpp"),
}
_FLAGS = ("-std=c++17", "-O2", "-fPIC", "-DNDEBUG", "-fno-exceptions", "-D_GLIBCXX_USE_CXX11_ABI=1")


@dataclass(frozen=True)
class Site:
    """A built mini-Triton on an LLVM that has three libraries more.

    Attributes:
        smith: the tool.
        llvm: prefix of that LLVM: links to the distribution's, and the three.
        sources: of the three, laid out as llvm-project is.
    """

    smith: Smith
    llvm: Path
    sources: Path

    @property
    def answer(self) -> Path:
        """The program that calls two of them."""
        return self.smith.build() / "bin" / "mini-answer"

    @property
    def folder(self) -> Path:
        """Of the debug libraries."""
        return self.smith.env("dev") / "debug-libraries"

    def run(self, *argv: str | Path, code: int = 0) -> str:
        """`debug-library`; what it printed."""
        done = self.smith("debug-library", *argv, code=code)
        return done.out + done.err

    def forget(self) -> None:
        """Leave the environment as if it had never had a debug library."""
        self.run("--undo")
        shutil.rmtree(self.folder, ignore_errors=True)
        (self.smith.env("dev") / "receipts" / "debug-library.json").unlink(
            missing_ok=True
        )  # names the sources
        self.smith("build-triton")

    def has_lines(self, file: str) -> bool:
        """Whether the program's debug information names this source."""
        program = LLVM / "bin" / "llvm-dwarfdump"
        return f"{file}" in capture(program, "--show-sources", self.answer)

    def shared_llvm(self) -> bool:
        """Whether the program needs the shared libLLVM."""
        return "libLLVM" in capture(LLVM / "bin" / "llvm-readelf", "--needed-libs", self.answer)


def make(factory: pytest.TempPathFactory) -> Site:
    """Mini-Triton, built with the libraries as an LLVM would have them: optimised, without debug info."""
    require_llvm()
    root = factory.mktemp("mini libraries")
    changes = {
        f"bin/{name}": (HERE / "mini_libraries" / "triton" / "bin" / name).read_text(encoding="utf-8")
        for name in ("CMakeLists.txt", "mini-answer.cpp", "mini-cse.cpp")
    }
    smith = ready(Smith(root, cwd=plant("mini_triton", root / "my checkout", changes)), factory)
    sources = root / "llvm project"
    shutil.copytree(SOURCES, sources)
    prefix = _llvm(root / "my llvm", sources, made_once(factory, "mini archives", _archives))
    smith("setup-mlir", "--provider", "system", "--llvm-dir", prefix)
    smith("build-triton")
    return Site(smith, prefix, sources)


def _llvm(prefix: Path, sources: Path, archives: Path) -> Path:
    """The distribution's LLVM by links, with the three libraries and their headers and CMake targets."""
    own = {"include", "include/mlir", "include/llvm", "lib", "lib/cmake", "lib/cmake/mlir"}
    for name in ("bin", *sorted(own)):
        (prefix / name).mkdir(parents=True)
        for entry in (LLVM / name).iterdir():
            if f"{name}/{entry.name}" not in own:
                (prefix / name / entry.name).symlink_to(entry)
    for project in ("llvm", "mlir"):
        shutil.copytree(
            sources / project / "include" / project / "Mini", prefix / "include" / project / "Mini"
        )
    for archive in archives.glob("*.a"):
        shutil.copy(archive, prefix / "lib")
    package = prefix / "lib" / "cmake" / "mlir"
    for file in package.glob("MLIR*.cmake"):
        text = file.read_text(encoding="utf-8")
        file.unlink()
        file.write_text(text, encoding="utf-8")
    more = (HERE / "mini_libraries" / "packages.cmake").read_text(encoding="utf-8")
    with (package / "MLIRTargets.cmake").open("a", encoding="utf-8") as targets:
        targets.write(more.replace("@LIB@", str(prefix / "lib")))
    return prefix


def _archives(out: Path) -> None:
    """The three libraries, which any such LLVM may have a copy of: they hold no debug info, so no paths."""
    folders = {"LLVMMini": SOURCES / "llvm" / "lib" / "Mini", "MLIRMini": SOURCES / "mlir" / "lib" / "Mini"}
    include = f"-I{LLVM / 'include'}"
    for program, folder, definitions, action, output in (
        ("llvm-tblgen", "LLVMMini", "Metals.td", "-gen-searchable-tables", "MiniGenMetals.inc"),
        ("mlir-tblgen", "MLIRMini", "Colors.td", "-gen-enum-decls", "Colors.h.inc"),
        ("mlir-tblgen", "MLIRMini", "Colors.td", "-gen-enum-defs", "Colors.cpp.inc"),
    ):
        source = folders[folder] / definitions
        capture(LLVM / "bin" / program, action, include, source, "-o", out / output)
    folders["MLIRMiniMany"] = folders["MLIRMini"] / "Many"
    headers = tuple(
        f"-I{path}" for path in (SOURCES / "llvm/include", SOURCES / "mlir/include", LLVM / "include", out)
    )
    for name, files in _FILES.items():
        objects = []
        for file in files:
            objects.append(out / f"{file}.o")
            source = folders[name] / file
            capture(LLVM / "bin" / "clang++", *_FLAGS, *headers, "-c", source, "-o", objects[-1])
        capture(LLVM / "bin" / "llvm-ar", "qcs", out / f"lib{name}.a", *objects)
