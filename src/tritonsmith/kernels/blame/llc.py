"""The LLVMs at hand: their llc on Triton's llir, with the flags that Triton gives LLVM."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tritonsmith import configs, untrusted
from tritonsmith.errors import FactError
from tritonsmith.facts.variables import covers
from tritonsmith.plan import files
from tritonsmith.plan.process import query

_NAME = re.compile(r"llc(-\d+)?", re.ASCII)
_VERSION = re.compile(r"LLVM version (\d+\.\d+\.\d+\S*)")
_PTX = re.compile(r"^\s*ptx(\d+)\s", re.MULTILINE)
_LINES = 2  # of a message


@dataclass(frozen=True)
class Llc:
    """An llc.

    Attributes:
        program: its path.
        version: of its LLVM: `19.1.7`.
    """

    program: Path
    version: str

    def has(self, flag: str) -> bool:
        """Whether it knows a flag."""
        answer = query((str(self.program), "--help-hidden"))
        return bool(
            answer and re.search(rf"\s-{{1,2}}{re.escape(flag.lstrip('-').partition('=')[0])}\b", answer.out)
        )


def at_hand(more: Sequence[Path] = ()) -> tuple[Llc, ...]:
    """Those on PATH, and others, one for each version, the oldest first.

    Raises:
        FactError: one of the others is no llc.
    """
    found = {one.version: one for one in map(of, more)}
    for program in _on_path():
        if (version := _version(program)) and version not in found:
            found[version] = Llc(program, version)
    return tuple(
        sorted(found.values(), key=lambda one: [int(part) for part in re.findall(r"\d+", one.version)])
    )


def of(program: Path) -> Llc:
    """A program that is an llc.

    Raises:
        FactError: it is none.
    """
    if version := _version(program):
        return Llc(program, version)
    raise FactError("this is no llc", where=program, hints=["--llc /usr/lib/llvm-19/bin/llc"])


def assembly(
    llc: Llc, llir: Path, target: tuple[str, str], out: Path, backend: str, triton: str, *, fusion: bool
) -> list[str]:
    """Write what this LLVM makes of an llir, as Triton would have it made.

    Args:
        llc: of the LLVM.
        llir: the file.
        target: of the GPU, `sm_90a` or `gfx942`; and the version of PTX.
        out: the file to write.
        backend: `cuda` or `hip`.
        triton: version, whose flags are taken.
        fusion: the option `enable_fp_fusion`.

    Returns:
        The flags of Triton that this LLVM does not have.

    Raises:
        FactError: it does not take the file.
    """
    table = configs.load("blame")["llc"]
    wanted = [*table["arguments"], *([table["fusion"]] if fusion else [])]
    if backend == "cuda":
        rows = table["flags"]
        wanted += [
            flag
            for row in rows
            if covers(triton, row["since"], row.get("until", ""))
            for flag in row["flags"]
        ]
    flags = [flag for flag in wanted if flag == "-O3" or llc.has(flag)]
    argv = [str(llc.program), f"-mtriple={table['triples'][backend]}", f"-mcpu={target[0]}", *flags]
    if backend == "cuda":
        argv.append(f"-mattr=+ptx{_ptx(llc, target[0], target[1], table['triples'][backend])}")
    answer = query([*argv, str(llir), "-o", str(out)], timeout=table["timeout"])
    if answer is None or answer.code:
        lines = [line.rpartition(f"{llir}:")[2] for line in (answer.err if answer else "").splitlines()]
        said = next((line for line in lines if "error" in line), "\n".join(lines[:_LINES]))
        what = f"llc {llc.version} does not take this llir"
        raise FactError(what, where=llc.program, why=said or "it does not run, or takes too long")
    if backend == "cuda":
        files.write(out, _as_triton(untrusted.read_text(out, untrusted.OURS), target))
    return [flag for flag in wanted if flag not in flags]


def ptx_target(ptx: str) -> tuple[str, str]:
    """`sm_90a` and `8.7` of a PTX.

    Raises:
        FactError: it does not say so.
    """
    version = re.search(r"^\.version (\d+\.\d+)", ptx, re.MULTILINE)
    target = re.search(r"^\.target (sm_\w+)", ptx, re.MULTILINE)
    if version is None or target is None:
        raise FactError("this ptx has no version or no target")
    return target[1], version[1]


def _ptx(llc: Llc, target: str, version: str, triple: str) -> int:
    """The wanted version of PTX, or the newest that this LLVM knows, as Triton takes it."""
    answer = query((str(llc.program), f"-mtriple={triple}", f"-mcpu={target}", "-mattr=help", os.devnull))
    known = [int(number) for number in _PTX.findall(f"{answer.out}\n{answer.err}" if answer else "")]
    wanted = int(version.replace(".", ""))
    return max((number for number in known if number <= wanted), default=wanted)


def _as_triton(ptx: str, target: tuple[str, str]) -> str:
    """What make_ptx does to LLVM's PTX: version and target are those of ptxas and the GPU, no `debug`."""
    ptx = re.sub(r"\.version \d+\.\d+", f".version {target[1]}", ptx)
    ptx = re.sub(r"\.target sm_\w+", f".target {target[0]}", ptx)
    return re.sub(r",\s*debug|debug,\s*", "", ptx)


def _on_path() -> Iterator[Path]:
    for folder in os.get_exec_path():
        try:
            found = sorted(Path(folder).iterdir())
        except OSError:
            continue
        yield from (path for path in found if _NAME.fullmatch(path.name))


def _version(program: Path) -> str:
    answer = query((str(program), "--version"))
    found = _VERSION.search(answer.out) if answer and answer.code == 0 else None
    return found[1] if found else ""
