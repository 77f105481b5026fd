"""Errors that a user can act on: the failure, its place, the reason, and remedies; each has an exit code."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from types import MappingProxyType

# Scripts tell outcomes apart by these numbers; from 126 on a shell has meanings of its own.
EXIT_FAILURE = 1
EXIT_USAGE = 2
EXIT_BUG = 3
EXIT_UNDECIDED = 5
EXIT_INTERRUPTED = 130  # as a shell reports SIGINT
EXIT_BROKEN_PIPE = 141  # as a shell reports SIGPIPE: the reader of the output is gone


class SmithError(Exception):
    """An expected failure, with everything a user needs to fix it.

    Attributes:
        what: one sentence, the failure itself.
        where: the file, folder, URL or command it is about.
        why: the reason, as far as it is known; may be several lines.
        hints: things to try, each a sentence or a command.
        reads: files that may be the reason, each with the digest of its content; empty if that is not known.
    """

    exit_code = EXIT_FAILURE
    reads: Mapping[str, str] = MappingProxyType({})

    def __init__(
        self, what: str, *, where: object = None, why: str | None = None, hints: Iterable[str] = ()
    ) -> None:
        super().__init__(what)
        self.what = what
        self.where = None if where is None else str(where)
        self.why = why
        self.hints = tuple(hints)

    @property
    def line(self) -> str:
        """The failure and the first line of its reason, for a table or a journal."""
        return ": ".join(filter(None, (self.what, (self.why or "").strip().partition("\n")[0])))

    def __str__(self) -> str:
        lines = [self.what]
        if self.where:
            lines.append(f"  where: {self.where}")
        if self.why:
            first, *rest = self.why.splitlines()
            lines += [f"  why:   {first}", *(f"         {line}" for line in rest)]
        if self.hints:
            lines += ["Things to try:", *(f"  - {hint}" for hint in self.hints)]
        return "\n".join(lines)


class UsageError(SmithError):
    """The command line asks for something that does not exist or contradicts itself."""

    exit_code = EXIT_USAGE


class ConfigError(SmithError):
    """A TOML file has an unknown key, a wrong type or a value outside its choices."""


class FactError(SmithError):
    """A fact that the recipe needs could not be read: a missing checkout, a missing LLVM."""


class PreflightError(SmithError):
    """The plan would fail minutes from now, for a reason that is known already."""


class StepError(SmithError):
    """A step of a plan failed."""


class LockedError(SmithError):
    """Another process holds the lock of this environment."""


class OwnershipError(SmithError):
    """A deletion outside the folders that this tool marked as its own."""


class DownloadError(SmithError):
    """A file could not be fetched, or does not match its checksum."""


class UndecidedError(SmithError):
    """An undecided result: several suspects are left, or a measurement that is not certain."""

    exit_code = EXIT_UNDECIDED


class InterruptedRunError(SmithError):
    """The user pressed ^C; what was built so far is kept."""

    exit_code = EXIT_INTERRUPTED


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the name that a misspelled one is most like; empty if it is like none."""
    return next(iter(get_close_matches(name, sorted(known), n=1, cutoff=0.5)), "")


_MANY_NAMES = 30  # half a screen, wrapped


def did_you_mean(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Hints for a misspelled name.

    Args:
        name: the misspelled name.
        known: all valid names.

    Returns:
        One or two hints: the nearest name, if there is one, and the whole list unless it is long.
    """
    names = sorted(known)
    near = nearest(name, names)
    listing = f"known names: {', '.join(names)}" if names else "no known names"
    if not near:
        return (listing,)
    meant = f"did you mean {near!r}?"
    # Beside the nearest name nobody looks for another among a hundred.
    return (meant, listing) if len(names) <= _MANY_NAMES else (meant,)
