"""Find programs, remember what they answer, and read what c++filt and compute-sanitizer print.

An answer is remembered in the workspace: `clang++ --version` takes 20 ms, CMake's script of the tool's own
`.venv` 70, and a build that has nothing to do would spend most of its time on them. It belongs to the path
that was asked, and to the file behind its links: its inode, size and time stamp.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import takewhile
from pathlib import Path

from tritonsmith.core import configs, process, untrusted
from tritonsmith.core.envs import workspace
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.process import capture
from tritonsmith.core.text import version_key

_VERSION = re.compile(r"\d+(?:\.\d+)+")
_LLVM_MAJORS = range(30, 10, -1)  # versioned names of distributions, newest first
_MANGLED = re.compile(r"\b_Z\w+")
_DEMANGLERS = ("llvm-cxxfilt", "c++filt", "cxxfilt")
ANSWERS_FILE = "programs.json"  # in the workspace
_ANSWERS_SCHEMA = 1
_MOST_ANSWERS = 200  # answers; more are leftovers of programs that are gone
_STAND_FOR_OTHERS = ("ccache", "distcc", "icecc", "recc", "sccache")  # by links with a compiler's name
_SANITIZER = "compute-sanitizer"
_LOG_LINE = re.compile(r"^=========(?: (?P<text>.*))?$")
_NO_ERRORS = ("COMPUTE-SANITIZER", "ERROR SUMMARY", "RACECHECK SUMMARY", "Target application", "Warning")
_HOST_STACK = "Saved host backtrace"
_SOURCE_LINE = re.compile(r"^at .* in \S+:\d+$")


@dataclass(frozen=True)
class Tool:
    """A program on this machine.

    Attributes:
        name: the name that was searched for: `clang++`.
        path: absolute.
        version: dotted; empty if it does not report one.
    """

    name: str
    path: Path
    version: str = ""

    @property
    def major(self) -> int:
        """The first number of the version; 0 if unknown."""
        return (version_key(self.version) or (0,))[0]


def find(name: str, *, folders: Iterable[Path] = (), names: Iterable[str] = ()) -> Tool | None:
    """Return the first program of that name, or of the other names, in these folders and then on PATH."""
    for candidate in (name, *names):
        for folder in (*map(str, folders), None):
            program = process.which(candidate, path=folder) if folder else process.which(candidate)
            if program:
                return Tool(name, Path(program), version_of(Path(program)))
    return None


def own(name: str) -> Tool | None:
    """Return a program from the tool's own `.venv` (CMake, Ninja), or else from PATH."""
    # CMake's own folder comes first: the package `cmake` puts a script before it that starts Python, which
    # costs 0.12 s at each configure.
    return find(name, folders=[*_behind_scripts(), Path(sys.executable).parent])


def _behind_scripts() -> list[Path]:
    """Return the folder of CMake itself in the tool's own `.venv`."""
    return list(Path(sys.executable).parents[1].glob("lib/python*/site-packages/cmake/data/bin"))


def versioned(name: str) -> list[str]:
    """Return the names under which distributions install LLVM's programs, newest first: `lldb-19`."""
    return [f"{name}-{major}" for major in _LLVM_MAJORS]


def version_of(program: Path) -> str:
    """Return the version that `PROGRAM --version` prints; empty if there is none.

    For a script in the tool's own `.venv`, the program that the script starts is asked instead.
    """
    if program.parent == Path(sys.executable).parent:
        behind = (folder / program.name for folder in _behind_scripts())
        program = next(filter(Path.is_file, behind), program)
    output = ask(program, "--version")
    match = _VERSION.search(output or "")
    return match[0] if match else ""


@dataclass(frozen=True)
class Compilers:
    """The programs that compile and link.

    Attributes:
        cc: the C compiler.
        cxx: the C++ compiler of the same release.
        linker: `ld.lld` or `mold`; None for the compiler's default.
        launcher: `ccache` or `sccache`; None for none.
    """

    cc: Tool | None
    cxx: Tool | None
    linker: Tool | None
    launcher: Tool | None


def compilers(
    *, compiler: str = "", linker: str = "lld", launcher: str = "ccache", llvm_bin: Path | None = None
) -> Compilers:
    """Find a compiler, a linker and a compiler cache.

    Args:
        compiler: path of a clang++ or g++; empty to look for a clang++, the LLVM's own first.
        linker: `lld`, `mold` or `default`.
        launcher: `ccache`, `sccache` or `none`.
        llvm_bin: `bin` of the LLVM that Triton is built against.
    """
    beside = [llvm_bin] if llvm_bin else []
    if compiler:
        cxx = find(compiler)
    else:
        cxx = _unversioned(find("clang++", folders=beside, names=versioned("clang++")))
    cc = find(_c_name(cxx.path)) if cxx else None
    # ld.lld of the compiler's own release reads its bitcode (LTO); an older one from PATH may not.
    near = [*beside, *([cxx.path.resolve().parent] if cxx else [])]
    found_linker = None
    if linker == "lld":
        found_linker = find("ld.lld", folders=near, names=versioned("ld.lld"))
    elif linker == "mold":
        found_linker = find("mold")
    return Compilers(cc, cxx, found_linker, None if launcher == "none" else find(launcher))


def _unversioned(cxx: Tool | None) -> Tool | None:
    """Return the unversioned name of a compiler, if it has one: `llvm-19/bin/clang++` for `clang++-19`."""
    if cxx is None or cxx.path.name == "clang++":
        return cxx
    # Upstream's setup.py calls `clang++` by this name, and CMake starts anew when the compiler's path
    # changes: both builds must name it alike.
    plain = cxx.path.resolve().parent / "clang++"
    return Tool(cxx.name, plain, cxx.version) if plain.exists() else cxx


def _c_name(cxx: Path) -> str:
    name = cxx.name.replace("clang++", "clang").replace("g++", "gcc").replace("c++", "cc")
    return str(cxx.with_name(name))


def ask(program: Path, *arguments: str, timeout: float = 10.0) -> str | None:
    """Return the output of a deterministic program; None if it fails or exceeds the timeout in seconds."""
    if not _answers_for_itself(program):
        return capture((str(program), *arguments), timeout=timeout)
    question = json.dumps([str(program), *arguments])
    return remembered(question, program, lambda: capture((str(program), *arguments), timeout=timeout))


def remembered(question: str, file: Path, answer_of: Callable[[], str | None]) -> str | None:
    """Return an answer that depends on one file only; None is not remembered.

    Args:
        question: the key of the answer.
        file: its inode, size and time stamp are compared.
        answer_of: computes the answer.
    """
    identity = _identity(file)
    memory = _remembered_answers() if identity else None
    # The path is a part of the question, and the file behind its links of the identity: an
    # update-alternatives link that leads elsewhere is asked again.
    if memory and question in memory.answers and memory.answers[question][0] == identity:
        return memory.answers[question][1]
    answer = answer_of()
    if memory and identity and answer is not None:
        # The newest come last, so that the oldest are dropped.
        memory.answers.pop(question, None)
        memory.answers[question] = (identity, answer)
        memory.learned = True
    return answer


def unsaved_answers() -> tuple[Path, str] | None:
    """Return the file of the answers, and its new text; None if no answer was learned."""
    memory = _remembered_answers()
    if memory is None or not memory.learned:
        return None
    newest = dict(list(memory.answers.items())[-_MOST_ANSWERS:])
    return memory.file, json.dumps({"schema": _ANSWERS_SCHEMA, "answers": newest}, indent=1) + "\n"


def _remembered_answers() -> RememberedAnswers | None:
    """Return the cached answers; None where there is no workspace to keep them in."""
    try:
        return _read_answers(workspace.default().root / ANSWERS_FILE)
    except SmithError:
        return None


@cache
def _read_answers(file: Path) -> RememberedAnswers:
    try:
        content = untrusted.read_json(file)
        if content["schema"] != _ANSWERS_SCHEMA:
            return RememberedAnswers(file)
        return RememberedAnswers(
            file, {key: (str(identity), str(text)) for key, (identity, text) in content["answers"].items()}
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return RememberedAnswers(file)


def _answers_for_itself(program: Path) -> bool:
    """Return whether this very file answers, not another found by its name or the environment."""
    real = program.resolve()
    # `/usr/lib/ccache/clang++` is a link to ccache, which runs another clang++ on PATH.
    if real.name in _STAND_FOR_OTHERS and program.name != real.name:
        return False
    # Scripts of the tool's own packages are rewritten with these.
    if program.parent == Path(sys.executable).parent:
        return True
    try:
        with untrusted.opened(real) as file:
            # What a script answers may depend on the environment (pyenv, update-alternatives).
            return file.read(2) != b"#!"
    except OSError:
        return False


def _identity(file: Path) -> str | None:
    """Return a key that changes whenever the file does; None if there is no file."""
    try:
        real = file.resolve()
        state = real.stat()
    except OSError:
        return None
    return f"{real} {state.st_ino} {state.st_size} {state.st_mtime_ns}"


@dataclass
class RememberedAnswers:
    """The answers of programs, as long as their files are the same.

    Attributes:
        file: the file that they are kept in.
        answers: question (the command line) to the identity of the program's file, and its answer.
        learned: whether an answer is not in the file yet.
    """

    file: Path
    answers: dict[str, tuple[str, str]] = field(default_factory=dict)
    learned: bool = False


def demangled_names(mangled: Sequence[str]) -> tuple[str, ...]:
    """Return the names demangled; unchanged if no program is there, or it does not answer for each."""
    candidates = (*_DEMANGLERS, *versioned("llvm-cxxfilt"))
    program = next(filter(None, map(process.which, candidates)), None)
    lines = (capture((program, *mangled)) or "").splitlines() if program and mangled else []
    # c++filt may stop at a name that is newer than it; half an answer would pair names wrongly.
    return tuple(lines) if len(lines) == len(mangled) else tuple(mangled)


def demangled_text(message: str) -> str:
    """Return a message, such as a linker's, with the names in it demangled."""
    mangled = tuple(dict.fromkeys(_MANGLED.findall(message)))
    known = dict(zip(mangled, demangled_names(mangled), strict=True))
    return _MANGLED.sub(lambda match: known[match[0]], message)


def sanitizer_tools() -> tuple[str, ...]:
    """Return the names of its tools: `memcheck` and the others."""
    return tuple(configs.load("sanitizers")["gpu"]["tools"])


def find_sanitizer() -> Path:
    """Return the path of the program.

    Raises:
        FactError: it is not there.
    """
    places = configs.load("sanitizers")["gpu"]["places"]
    candidates = [process.which(_SANITIZER), *places]
    for candidate in candidates:
        if candidate and Path(candidate).is_file():
            return Path(candidate)
    hints = ["it comes with the CUDA toolkit: put it on PATH"]
    raise FactError(f"no {_SANITIZER}", why=f"neither on PATH nor {', '.join(places)}", hints=hints)


def sanitizer_argv(program: Path, tool: str, log: Path) -> tuple[str, ...]:
    """Return the words before the watched program.

    Args:
        program: compute-sanitizer.
        tool: one of `sanitizer_tools()`.
        log: the file that its report is written to.
    """
    limit = configs.load("sanitizers")["gpu"]["limit"]
    return (str(program), "--tool", tool, "--print-limit", str(limit), "--log-file", str(log), "--")


def first_sanitizer_error(text: str) -> tuple[str, Sequence[str]]:
    """Return a log's first error: its head, and the lines on its place on the GPU; empty if there is none."""
    messages = [match["text"] or "" for line in text.splitlines() if (match := _LOG_LINE.match(line))]
    heads = [
        n for n, line in enumerate(messages) if line and line[0] != " " and not line.startswith(_NO_ERRORS)
    ]
    if not heads:
        return "", ()
    # An API call that fails ("Program hit ...") follows from an error on the GPU; it counts
    # only if the log has no other.
    first = next((n for n in heads if not messages[n].startswith("Program hit")), heads[0])
    rest = takewhile(lambda line: line.strip() and _HOST_STACK not in line, messages[first + 1 :])
    return messages[first], [line.strip() for line in rest]


def sanitizer_finished(text: str) -> bool:
    """Return whether it saw the program end: without its summary, an empty log means nothing."""
    return " SUMMARY: " in text


def error_place(lines: Sequence[str]) -> str:
    """Return `at KERNEL+0x120 in FILE:LINE` of an error; empty without line information."""
    return next((line for line in lines if _SOURCE_LINE.match(line)), "")
