"""Identify a failure by its kind and text, to distinguish "the same again" from "something else"."""

from __future__ import annotations

import itertools
import re
import signal
from dataclasses import dataclass
from typing import Literal

from tritonsmith.ir import ir_text

Kind = Literal[
    "assertion",
    "fatal error",
    "error",
    "exception",
    "signal",
    "timeout",
    "failure",
    "exit code",
    "command",
    "wrong",
    "cannot launch",
]

UNREACHABLE = "unreachable: "  # before the message of `llvm_unreachable`, which may be empty
# Deeper frames of a stack trace depend on how the input nests, which is what a reduction changes.
FRAMES = 3
LINE = 4096  # characters of a line that are searched
_ASSERTIONS = 50  # lines that are searched for one
_ASSERTION = re.compile(
    r"(?<![^\s:])(?P<file>[^\s:]+):\d+: (?P<in>.*?): Assertion [`'](?P<text>.*)['`] failed"
)
# As macOS prints an assertion.
_BSD_ASSERTION = re.compile(
    r"Assertion failed: \((?P<text>.*)\), function (?P<in>\S+), file (?P<file>[^\s,]+)"
)
# The message is on the line before, and a release build has neither a message nor a file
# (llvm_unreachable_internal of llvm/lib/Support/ErrorHandling.cpp).
_UNREACHABLE = re.compile(
    r"(?:^(?P<text>[^\n]+)\n)?UNREACHABLE executed(?: at (?P<file>[^\s:!]+))?", re.MULTILINE
)
_FATAL = re.compile(r"^(?:LLVM|rocm) ERROR: (?P<text>[^\n]*)", re.MULTILINE)
# Python's faulthandler prints `Fatal Python error: Aborted` for a signal, after the message that counts.
_ERROR = re.compile(r"^(?!\s|Fatal Python)[^\n]*?\berror: (?P<text>[^\n]*)$", re.MULTILINE)
# `ptxas /tmp/x.ptx, line 4; error   : Arguments mismatch ...`, below an error of Triton's that says nothing.
_PTXAS = re.compile(r"^ptxas\b[^\n]*?\b(?:error|fatal) *: (?P<text>[^\n]*)$", re.MULTILINE)
_ABORTED = "Ptx assembly aborted due to errors"
_PIPELINE = re.compile(r"Pipeline failed while executing \[(?P<text>[^\n]*)\]")
_GENERAL = "Failures have been detected while processing an MLIR pass pipeline"  # after a crash
_RAISED = re.compile(r"^(?P<text>\w*(?:Error|Exception): [^\n]*)$", re.MULTILINE)
_PLAIN = "RuntimeError: PassManager::run failed"  # of libtriton, whatever has failed
_OPERATION = re.compile(r': "[\w.$]+"\(.*')  # the operation that an error is about: its operands come and go
# `#5 0x0000 name(args) (/lib/libtriton.so+0x12ab)`; bare: `5 libtriton.so 0x0000 name + 12`.
_FRAME = re.compile(r"^ *#\d+ 0x[0-9a-f]+ (?P<text>[^\n]*)$", re.MULTILINE)
_BARE = re.compile(r"^\d+ +(?P<library>\S+) +0x(?P<at>[0-9a-f]{6,})(?P<text>[^\n]*)$", re.MULTILINE)
_PLACE = re.compile(r"\((?P<library>[^()]*)\+0x(?P<at>[0-9a-f]+)\)")
_PAGE = 0xFFF  # the same wherever the system puts a library
_HANDLERS = re.compile(r"PrintStackTrace|SignalHandler|RunSignalHandlers|__restore_rt|libc\.so|libpthread")
_VALUE = re.compile(r"%[\w$.\-]+(?:#\d+)?")
_ALIAS = re.compile(r"(#[A-Za-z_]+)\d*\b")
_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
# Absolute paths: in quotes, at the start of a message about a file, and elsewhere those without blanks.
_QUOTED = re.compile(r"""(?P<quote>["'`])/[^"'`\n]*/(?P<name>[^"'`/\n]*)(?P=quote)""")
_LEADING = re.compile(r"^/[^\n:]*/(?=[^\n:/]+:\d)", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.:/])(?:/[\w.+@\-]+)+/(?=[\w.+\-])")


@dataclass(frozen=True)
class Failure:
    """A failure, less what differs from run to run and from file to file.

    Attributes:
        kind: what sort of thing happened.
        text: the assertion and its function, the first error, the frames.
    """

    kind: Kind
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.text}" if self.text else self.kind


def of(log: str, *, crashed: str = "", timeout: bool = False, code: int = 1) -> Failure:
    """Find the failure in a log.

    Args:
        log: what was printed from the first pass on.
        crashed: name of the signal that ended the process; empty if none did.
        timeout: whether it was stopped because it took too long.
        code: exit code.
    """
    # In this order: a process that aborts prints its message first, and dies by a signal then.
    if timeout:
        return Failure("timeout", "")
    log = searched(log)
    if failed := _aborted(log):
        return failed
    if crashed:
        frames = ", ".join(top_frames(log))
        return Failure("signal", f"{crashed}: {frames}" if frames else crashed)
    return _refused(log) or (Failure("failure", "") if code in (0, 1) else Failure("exit code", str(code)))


def _refused(log: str) -> Failure | None:
    """Return the message of a pass that failed in an orderly way."""
    by_ptxas = (match["text"] for match in _PTXAS.finditer(log))
    if message := next((text for text in by_ptxas if text != _ABORTED), ""):
        return Failure("error", f"ptxas: {_plain(message)}")
    # A diagnostic names the reason; what Python raises afterwards often says only that there was one.
    messages = [match["text"] for match in _ERROR.finditer(log)]
    if message := next((text for text in messages if not text.startswith(_GENERAL)), ""):
        return Failure("error", _plain(_OPERATION.sub("", message)))
    raised = [match for match in _RAISED.finditer(log) if match["text"] != _PLAIN]
    if raised:  # the last one is what reached the top; those before it are its causes
        return Failure("exception", _plain(raised[-1]["text"]))
    if match := _PIPELINE.search(log):
        return Failure("failure", _plain(match["text"]))
    return None


def _aborted(log: str) -> Failure | None:
    """Return the message of a compiler that gave up by itself."""
    for pattern in (_ASSERTION, _BSD_ASSERTION):
        if match := pattern.search(_asserted(log)):
            where = f"{_name(match['in'])}, {_base(match['file'])}"
            return Failure("assertion", f"{_plain(match['text'])} in {where}")
    if match := _UNREACHABLE.search(log):
        place = f" in {_base(match['file'])}" if match["file"] else ""
        return Failure("assertion", f"{UNREACHABLE}{_plain(match['text'] or '')}{place}")
    match = _FATAL.search(log)
    return Failure("fatal error", _plain(match["text"])) if match else None


def is_shown(expected: Failure, printed: str, code: int) -> bool:
    """Report whether a process of its own shows a failure.

    Args:
        expected: the failure.
        printed: all that the process printed.
        code: its exit code; negative where a signal ended it.
    """
    died = signal.Signals(-code).name if code < 0 else ""
    text = expected.text
    # Outside the worker a failure may be printed inside a traceback, and a crash has other frames.
    same = of(printed, crashed=died, code=code) == expected
    return same or bool(text and text in printed) or bool(died and text.startswith(died))


def searched(log: str) -> str:
    """Return a log in which lines longer than `LINE` are cut: the patterns are run on nothing else."""
    # Several patterns take quadratic time in the length of a line, and a log may have IR of megabytes in one.
    return log if len(log) <= LINE else "\n".join(line[:LINE] for line in log.split("\n"))


def _asserted(log: str) -> str:
    """Return the first lines of a log that speak of an assertion which failed."""
    # A line that repeats the beginning of such a message, and never ends it, takes the pattern cubic time.
    lines = (line for line in log.split("\n") if 0 <= line.find("Assertion ") <= line.rfind("failed"))
    return "\n".join(itertools.islice(lines, _ASSERTIONS))


def message(log: str) -> str:
    """Return the line of an assertion or a fatal error as the compiler printed it; empty if there is none."""
    log = searched(log)
    for pattern, part in ((_ASSERTION, _asserted(log)), (_BSD_ASSERTION, _asserted(log)), (_FATAL, log)):
        if match := pattern.search(part):
            return next(line for line in log.splitlines() if match[0].splitlines()[-1] in line).strip()
    return ""


def pass_of(log: str) -> str:
    """Return the pass in which it failed, as MLIR names its class; empty where MLIR does not say."""
    match = _PIPELINE.search(searched(log))
    return re.sub(r"^`(\w+)`.*", r"\1", match["text"]) if match else ""


def anonymous(text: str) -> str:
    """Return a text with no folders in it: a path keeps its last name."""
    text = _QUOTED.sub(lambda match: f"{match['quote']}{match['name']}{match['quote']}", text)
    return _PATH.sub("", _LEADING.sub("", text))


def _plain(text: str) -> str:
    """Return a text without values, numbers of aliases, locations and addresses."""
    # A reduction renumbers values and aliases, and the system moves addresses: the failure stays the same.
    text = ir_text.without_locations("mlir", text.encode()).decode()
    text = _ALIAS.sub(r"\1", _VALUE.sub("%", text))
    return " ".join(anonymous(_ADDRESS.sub("0x", text)).split())


def _name(signature: str) -> str:
    """Return `mlir::LLVM::getBase` of `python: Value mlir::LLVM::getBase(Location) const [with T = int]`."""
    signature = signature.replace("decltype(auto)", "auto")
    # GCC puts the result before the name, and `decltype(auto)` would end the name at its bracket.
    head = re.split(r"\(|\[with", signature.rpartition(": ")[2] if ": " in signature else signature)[0]
    return head.split()[-1] if head.split() else signature


def _base(path: str) -> str:
    return path.rpartition("/")[2]


def top_frames(log: str) -> list[str]:
    """List the topmost functions, the handler's aside; a place in the page stands for one without a name."""
    frames = [_frame(match["text"], _PLACE.search(match["text"])) for match in _FRAME.finditer(log)]
    frames = frames or [_frame(match["text"], match) for match in _BARE.finditer(log)]
    # A trace begins in the handler that prints it, below which the frames of the failure come.
    first = next((number for number, (library, name) in enumerate(frames) if _handles(library, name)), None)
    while first is not None and first < len(frames) and _handles(*frames[first]):
        first += 1
    return [name for _, name in frames[first or 0 :]][:FRAMES]


def _frame(text: str, place: re.Match[str] | None) -> tuple[str, str]:
    """Return library and name of a frame."""
    library = _base(place["library"]) if place else ""
    name = re.split(r"\(| \+ ", text.strip().replace("(anonymous namespace)::", ""))[0].strip()
    return library, name or (f"{library} ...{int(place['at'], 16) & _PAGE:03x}" if place else "?")


def _handles(library: str, name: str) -> bool:
    return bool(_HANDLERS.search(f"{library} {name}"))
