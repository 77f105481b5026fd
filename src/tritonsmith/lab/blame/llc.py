"""Compile Triton's llir with the llc and opt of any LLVM, in an older spelling where that LLVM needs it."""

from __future__ import annotations

import os
import re
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tritonsmith.build.store import store
from tritonsmith.compiler.manifest import Point
from tritonsmith.core import configs, untrusted
from tritonsmith.core.envs import receipts, settings, workspace
from tritonsmith.core.errors import FactError
from tritonsmith.core.plan import files
from tritonsmith.core.process import CommandOutput, query
from tritonsmith.facts import llvm_tree
from tritonsmith.facts.variables import covers

_NAME = re.compile(r"llc(-\d+)?", re.ASCII)
_VERSION = re.compile(r"LLVM version (\d+\.\d+\.\d+\S*)")
_PTX = re.compile(r"^\s*ptx(\d+)\s", re.MULTILINE)
_TRIPLE = re.compile(r"^target triple = .*\n", re.MULTILINE)
_TARGET = re.compile(r'^\s*\.amdgcn_target "([^"]+)"', re.MULTILINE)
_NO_CPU = "is not a recognized processor"
_SHORT = 12  # digits of a commit
_LINES = 2  # of a message
_FLOATS, _BOUNDS = 23, 21  # the LLVMs that spell floats, and launch bounds, in another way than those before
_TOKEN = re.compile(
    r'"[^"]*"|\n|\b(half|bfloat|float|double)\b|'
    r"(?<![\w.$%@!-])([+-](?:inf|qnan)|f0x[0-9A-Fa-f]+|-?\d+\.\d+e[+-]\d+)\b"
)
# Bits of exponent and mantissa.
_WIDTHS = {"half": (5, 10), "bfloat": (8, 7), "float": (8, 23), "double": (11, 52)}
_LETTERS = {"half": "H", "bfloat": "R"}
_FORMATS = {"half": ">e", "float": ">f", "double": ">d"}
_KERNEL = re.compile(r"^define ptx_kernel .*?(@[\w.$-]+)\(.*#(\d+)", re.MULTILINE)
_GROUP = re.compile(r"^attributes #(\d+) = \{(.*)\}$", re.MULTILINE)
_BOUND = re.compile(r'"nvvm\.(reqntid|maxntid|minctasm|maxnreg|cluster_dim|maxclusterrank)"="([\d,]+)"')
_SUFFIXES = {"reqntid": "xyz", "maxntid": "xyz", "cluster_dim": ("_x", "_y", "_z")}
_NUMBER = re.compile(r"^!(\d+) = ", re.MULTILINE)
_ANNOTATIONS = re.compile(r"^!nvvm\.annotations = !\{(.*)\}$", re.MULTILINE)


@dataclass(frozen=True)
class Llc:
    """An llc.

    Attributes:
        program: its path.
        version: of its LLVM: `19.1.7`.
        which: of several with that version: the commit, or the path.
    """

    program: Path
    version: str
    which: str = ""

    @property
    def label(self) -> str:
        """`llc 19.1.7`, `llc 24.0.0git (e54ac5310d5a)`."""
        return f"llc {self.version}" + (f" ({self.which})" if self.which else "")

    def has(self, flag: str) -> bool:
        """Report whether the program knows a flag."""
        # Plain `--help` leaves out most of LLVM's flags.
        answer = query((str(self.program), "--help-hidden"))
        return bool(
            answer and re.search(rf"\s-{{1,2}}{re.escape(flag.lstrip('-').partition('=')[0])}\b", answer.out)
        )


def at_hand(more: Sequence[Path] = (), trees: Iterable[Path] = ()) -> tuple[Llc, ...]:
    """Return the named programs, one for each commit of the trees, and one for each other version on PATH.

    Args:
        more: programs.
        trees: LLVMs, of which some have an llc.

    Returns:
        The oldest first.

    Raises:
        FactError: one of the programs is no llc.
    """
    llcs = [of(program) for program in dict.fromkeys(more)]
    for tree in trees:
        program = tree / "bin" / "llc"
        if version := _version(program) if program.is_file() else "":
            commit = llvm_tree.read(tree).commit[:_SHORT] if llvm_tree.is_tree(tree) else ""
            llcs += (
                [] if commit and commit in {llc.which for llc in llcs} else [Llc(program, version, commit)]
            )
    # Of installed ones, one for each version is enough; a tree of a commit may have the same version.
    there = {llc.version for llc in llcs}
    for program in _on_path():
        if (version := _version(program)) and version not in there:
            there.add(version)
            llcs.append(Llc(program, version))
    same = Counter(llc.label for llc in llcs)
    named = (replace(llc, which=str(llc.program)) if same[llc.label] > 1 else llc for llc in llcs)
    return tuple(
        sorted(named, key=lambda llc: ([int(part) for part in re.findall(r"\d+", llc.version)], llc.which))
    )


def trees(envs: Sequence[str]) -> Iterator[Path]:
    """Yield the LLVMs of the store, and those of environments.

    Raises:
        SmithError: an env file is wrong, or the store is.
    """
    space = workspace.default()
    every = [settings.load(env) for env in envs] or [settings.load("wheel")]
    for folder in dict.fromkeys(env.llvm.store for env in every):
        entries = [entry for entry in store.open_store(space, folder).entries() if entry.status == "ready"]
        # Of a commit the first is taken, and the llc of a debug build is slow.
        entries.sort(key=lambda entry: entry.manifest is not None and entry.manifest.build_type == "Debug")
        yield from (entry.path for entry in entries)
    for env in every:
        prefix = (receipts.read(space.env(env.name).receipt("setup-mlir")) or {}).get("prefix")
        yield from [Path(prefix)] if prefix else []


def of(program: Path) -> Llc:
    """Return a program as an llc.

    Raises:
        FactError: it is none.
    """
    answer = query((str(program), "--help"))
    # The overview of its help tells, as `--version` prints the same for opt and for llc.
    if answer and "llvm system compiler" in answer.out and (version := _version(program)):
        return Llc(program, version)
    raise FactError("this is not llc", where=program, hints=["--llc /usr/lib/llvm-19/bin/llc"])


@dataclass(frozen=True)
class LlcOptions:
    """The call of LLVM's code generator by Triton, as arguments of llc.

    Attributes:
        triple: of the target.
        cpu: `sm_90a`, `gfx942`.
        arguments: the other ones.
        attribute: `+ptx88`; empty for none.
        ptx: version of PTX: `8.8`; empty for AMD.
    """

    triple: str
    cpu: str
    arguments: tuple[str, ...]
    attribute: str
    ptx: str = ""

    @property
    def words(self) -> tuple[str, ...]:
        """All of them, as words of a command line."""
        attribute = (f"-mattr={self.attribute}",) if self.attribute else ()
        return (f"-mtriple={self.triple}", f"-mcpu={self.cpu}", *self.arguments, *attribute)


def options_of(point: Point, own: str, triton: str) -> LlcOptions:
    """Return how a Triton calls LLVM for a compile.

    Args:
        point: the compile.
        own: what that Triton made of its llir; for AMD it is not read.
        triton: its version.

    Raises:
        FactError: a PTX does not name its target and its version.
    """
    table = configs.load("blame")["llc"]
    # As the compile was asked to: without fusion, Triton does not let LLVM contract either.
    fusion = [table["fusion"]] if point.metadata.get("enable_fp_fusion", True) else []
    arguments, triple = [*table["arguments"], *fusion], table["triples"][point.backend]
    if point.backend == "cuda":
        # The llir names no GPU and no version of PTX: both are taken from what Triton made.
        cpu, version = ptx_target(own)
        rows = [row for row in table["flags"] if covers(triton, row["since"], row.get("until", ""))]
        arguments += [flag for row in rows for flag in row["flags"]]
        return LlcOptions(triple, cpu, tuple(arguments), f"+ptx{version.replace('.', '')}", version)
    row = table["attributes"]
    fits = point.arch.startswith(row["arch"]) and covers(triton, row["since"])
    return LlcOptions(triple, point.arch, tuple(arguments), row["value"] if fits else "")


def assembly(llc: Llc, llir: Path, like: Path, out: Path, point: Point, triton: str) -> list[str]:
    """Compile an llir to assembly with this LLVM, as Triton would.

    Args:
        llc: of the LLVM.
        llir: the file.
        like: what the Triton itself makes of its llir: its PTX version and target are taken.
        out: the file to write.
        point: the compile.
        triton: version, whose flags are taken.

    Returns:
        The flags of Triton that this LLVM does not have.

    Raises:
        FactError: it rejects the file.
    """
    table = configs.load("blame")["llc"]
    own = untrusted.read_text(like, untrusted.OURS)
    how = options_of(point, own, triton)
    cuda, triple, cpu, version, arguments = (
        point.backend == "cuda",
        how.triple,
        how.cpu,
        how.ptx,
        how.arguments,
    )
    attribute = f"+ptx{_ptx(llc, cpu, version, triple)}" if cuda else how.attribute
    # An llc ends at a flag that it does not know, so the caller says what is left out.
    flags = [flag for flag in arguments if flag == "-O3" or llc.has(flag)]
    argv = [str(llc.program), f"-mtriple={triple}", f"-mcpu={cpu}", *flags]
    argv += [f"-mattr={attribute}"] if attribute else []
    answer = query([*argv, str(llir), "-o", str(out)], timeout=table["timeout"])
    if answer and _NO_CPU in answer.err:  # it makes code for its oldest GPU then, and fails or not
        raise FactError(f"{llc.label} does not know {cpu}", where=llc.program)
    if answer is None or answer.code:
        raise FactError(
            f"{llc.label} does not accept this llir", where=llc.program, why=refusal(answer, llir)
        )
    assembled = untrusted.read_text(out, untrusted.OURS)
    files.write(out, _as_triton_ptx(assembled, (cpu, version)) if cuda else _as_triton_amdgcn(assembled, own))
    return [flag for flag in arguments if flag not in flags]


def opt_of(llc: Llc) -> Path:
    """Return the opt in the folder of an llc: `/usr/lib/llvm-19/bin/opt`, `opt-19`."""
    return llc.program.with_name(llc.program.name.replace("llc", "opt", 1))


def optimized(llc: Llc, llir: Path, out: Path, point: Point, triton: str) -> Path:
    """Optimise an llir with the O3 of an LLVM, as Triton runs it.

    Args:
        llc: of the LLVM, in whose folder the opt is.
        llir: the file, which LLVM has not optimised.
        out: the file to write.
        point: the compile.
        triton: version, whose flags are taken.

    Returns:
        The file that was written.

    Raises:
        FactError: there is no opt, or it rejects the file.
    """
    # Triton's O3 has a pass of its own, which breaks up PHI nodes of structs: no opt has that one.
    table = configs.load("blame")["opt"]
    argv = [str(opt_of(llc)), "-S", *table["arguments"]]
    text = untrusted.read_text(llir, untrusted.OURS)
    machine = table["machine"].get(point.backend)
    if machine and covers(triton, machine):
        triple = configs.load("blame")["llc"]["triples"][point.backend]
        argv += [f"-mtriple={triple}", f"-mcpu={point.arch}", str(llir)]
    else:  # opt makes a target machine for the triple that a text names
        files.write(out, _TRIPLE.sub("", text))
        argv += [*table["no-machine"], str(out)]
    for row in table["flags"]:
        if row["arch"] in {point.backend, point.arch} and covers(triton, row["since"], row.get("until", "")):
            argv += row["flags"]
    answer = query([*argv, "-o", str(out)], timeout=table["timeout"])
    if answer is None or answer.code:
        what = f"the opt of {llc.label} does not accept this llir"
        raise FactError(what, where=opt_of(llc), why=refusal(answer, Path(argv[-1])))
    return out


def refusal(answer: CommandOutput | None, llir: Path) -> str:
    """Return why an llc or opt rejects an llir; the answer is None if it does not run."""
    lines = [line.rpartition(f"{llir}:")[2] for line in (answer.err if answer else "").splitlines()]
    message = next((line for line in lines if "error" in line), "\n".join(lines[:_LINES]))
    return message or "it does not run, or did not finish in time"


def ptx_target(ptx: str) -> tuple[str, str]:
    """Return target and version of a PTX: `sm_90a` and `8.7`.

    Raises:
        FactError: it does not say so.
    """
    version = re.search(r"^\.version (\d+\.\d+)", ptx, re.MULTILINE)
    target = re.search(r"^\.target (sm_\w+)", ptx, re.MULTILINE)
    if version is None or target is None:
        raise FactError("this ptx has no version or no target")
    return target[1], version[1]


def _ptx(llc: Llc, target: str, version: str, triple: str) -> int:
    """Return the wanted version of PTX, or the newest that this LLVM knows, as Triton takes it."""
    # Without an input llc would read standard input.
    answer = query((str(llc.program), f"-mtriple={triple}", f"-mcpu={target}", "-mattr=help", os.devnull))
    known = [int(number) for number in _PTX.findall(f"{answer.out}\n{answer.err}" if answer else "")]
    newest = int(version.replace(".", ""))
    return max((number for number in known if number <= newest), default=newest)


def _as_triton_amdgcn(text: str, like: str) -> str:
    """Return amdgcn with the target as the LLVM spells it that assembles it: `amdgcn-amd-amdhsa--gfx942`."""
    own, spelled = _TARGET.search(text), _TARGET.search(like)
    return text.replace(own[1], spelled[1]) if own and spelled else text


def _as_triton_ptx(ptx: str, target: tuple[str, str]) -> str:
    """Rewrite LLVM's PTX as Triton's make_ptx does (third_party/nvidia/backend/compiler.py)."""
    # Version and target are those of ptxas and the GPU, and with `debug` ptxas would not optimise.
    ptx = re.sub(r"\.version \d+\.\d+", f".version {target[1]}", ptx)
    ptx = re.sub(r"\.target sm_\w+", f".target {target[0]}", ptx)
    return re.sub(r",\s*debug|debug,\s*", "", ptx)


def _on_path() -> Iterator[Path]:
    for folder in os.get_exec_path():
        try:
            # The order of a folder is chance, and of two programs of one version the first is taken.
            programs = sorted(Path(folder).iterdir())
        except OSError:
            continue
        yield from (path for path in programs if _NAME.fullmatch(path.name))


def _version(program: Path) -> str:
    answer = query((str(program), "--version"))
    version = _VERSION.search(answer.out) if answer and answer.code == 0 else None
    return version[1] if version else ""


def older(llir: str) -> Iterator[tuple[int, str]]:
    """Yield the same IR for older and older LLVMs: those before the one that is named, the newest first.

    What has no older spelling stays, and is refused again.
    """
    rows = configs.load("blame")["respell"]
    text = llir
    # Each step adds to those before: LLVM 19 needs all undone that 20 to 23 brought.
    for since in sorted({_FLOATS, _BOUNDS, *(row["since"] for row in rows)}, reverse=True):
        before = text
        if since == _FLOATS:
            text = _old_floats(text)
        if since == _BOUNDS:
            text = _old_bounds(text)
        for row in rows:
            if row["since"] == since:
                text = re.sub(row["new"], row["old"], text)
        if text != before:
            yield since, text


def _old_floats(llir: str) -> str:
    """Spell constants by their bits: hexadecimal ones, infinities, decimals that older LLVMs do not round."""
    kind = ""  # the last one of the line: an instruction names its type once

    def spelled(match: re.Match[str]) -> str:
        nonlocal kind
        if match[2]:
            return _old_float(kind, match[2]) if kind else match[2]
        kind = match[1] or ("" if match[0] == "\n" else kind)
        return match[0]

    return _TOKEN.sub(spelled, llir)


def _old_float(kind: str, text: str) -> str:
    exponent, mantissa = _WIDTHS[kind]
    if text.startswith("f0x"):
        bits = int(text[3:], 16)
    elif text[1:] in {"inf", "qnan"}:
        # The first bit of the mantissa makes a NaN a quiet one (IEEE 754).
        quiet = 1 << mantissa - 1 if text[1:] == "qnan" else 0
        bits = (text[0] == "-") << exponent + mantissa | ((1 << exponent) - 1) << mantissa | quiet
    else:
        bits = _rounded(kind, float(text))
        # A decimal that the type has exactly is read by every LLVM; another one is an error for the older
        # ones.
        if _value(kind, bits) == float(text):
            return text
    # A half and a bfloat have a letter before their own bits; a float has the bits of a double (LLVM's
    # language reference).
    if kind in _LETTERS:
        return f"0x{_LETTERS[kind]}{bits:04X}"
    return _as_double(bits) if kind == "float" else f"0x{bits:016X}"


def _rounded(kind: str, value: float) -> int:
    if kind == "bfloat":  # the upper half of a float, to the nearest even one
        (wide,) = struct.unpack(">I", struct.pack(">f", value))
        return int(wide + 0x7FFF + (wide >> 16 & 1)) >> 16
    return int.from_bytes(struct.pack(_FORMATS[kind], value))


def _value(kind: str, bits: int) -> float:
    if kind == "bfloat":
        kind, bits = "float", bits << 16
    (value,) = struct.unpack(_FORMATS[kind], bits.to_bytes(struct.calcsize(_FORMATS[kind])))
    return float(value)


def _old_bounds(llir: str) -> str:
    """Add launch bounds as metadata, and keep the attributes."""
    # Older LLVMs ignore the attributes silently, and ptxas then chooses other registers.
    groups = dict(_GROUP.findall(llir))
    annotations = [
        f'!{{ptr {kernel}, !"{name}{suffix}", i32 {number}}}'
        for kernel, group in _KERNEL.findall(llir)
        for name, numbers in _BOUND.findall(groups.get(group, ""))
        # A block has up to three sizes, and a bound for one of them alone is allowed.
        for suffix, number in zip(_SUFFIXES.get(name, ("",)), numbers.split(","), strict=False)
    ]
    if not annotations:
        return llir
    # New nodes need numbers that the text does not use yet.
    first = max(map(int, _NUMBER.findall(llir)), default=-1) + 1
    there = _ANNOTATIONS.search(llir)
    nodes = [
        *filter(None, [there[1] if there else ""]),
        *(f"!{first + at}" for at in range(len(annotations))),
    ]
    text = _ANNOTATIONS.sub("", llir)
    lines = [f"!nvvm.annotations = !{{{', '.join(nodes)}}}"]
    lines += [f"!{first + at} = {node}" for at, node in enumerate(annotations)]
    return "\n".join([text, *lines, ""])


def _as_double(bits: int) -> str:
    """Spell a float as older LLVMs do: by the bits of the double of the same value."""
    exponent, mantissa = 0xFF << 23, (1 << 23) - 1
    if bits & exponent == exponent and bits & mantissa:  # a NaN: conversions may change its payload
        wide = (bits >> 31) << 63 | 0x7FF << 52 | (bits & mantissa) << 29
        return f"0x{wide:016X}"
    return f"0x{struct.pack('>d', _value('float', bits)).hex().upper()}"
