"""Files that an LLVM near the pin is likely to break: those that the pin's bumps adapted."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path

from tritonsmith.core import untrusted
from tritonsmith.core.errors import StepError
from tritonsmith.core.plan import BuildObjects
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.facts.llvm_history import Bump

_SOURCES = (".c", ".cc", ".cpp")
_HEADERS = (".h", ".hpp")
_FOLDERS = ("lib", "python/src", "third_party", "bin")
_MOST = 8  # at 5 to 30 s of CPU time each: under two minutes on two cores
_DAYS = 21  # between an LLVM and its bump; the day of an LLVM is not known more precisely
_SHOWN = 3  # lines of each error
_BACKENDS = 2  # the last group of `batches`, after the compiler's sources and Python's


def towards(bumps: Iterable[Bump], branched: date | None) -> tuple[Bump, ...]:
    """Return bumps between the checkout's pin and an LLVM: earlier ones for an older LLVM, else later ones.

    Args:
        bumps: bumps around the checkout.
        branched: day of that LLVM's APIs; None if unknown. Near the checkout's pin both sides count.
    """
    around = tuple(bumps)
    # The commits that move the pin also adapt the code that an API change breaks. For an older LLVM the
    # earlier bumps tell what has changed since, for a newer one the later ones.
    own = next((bump for bump in around if not bump.after), None)
    if own is None or branched is None:
        return around
    days = (date.fromisoformat(own.date) - branched).days
    return tuple(bump for bump in around if abs(days) <= _DAYS or bump.after is (days < 0))


def builds_all(targets: Iterable[str]) -> bool:
    """Report whether Ninja's targets need the whole tree: no target stands for all, tests need programs."""
    named = tuple(targets)
    return not named or any(name == "all" or name.startswith(("check-", "test")) for name in named)


def choose(root: Path, bumps: Iterable[Bump], targets: Iterable[str] = ()) -> tuple[Path, ...]:
    """Return sources that bumps changed, and one for each changed header, the nearest bump's first.

    Args:
        root: the checkout.
        bumps: bumps around its pin, the nearest first.
        targets: Ninja's requested targets; sources of other programs and tests do not count.
    """
    requested = tuple(targets)

    def serves(source: Path) -> bool:
        return builds_all(requested) or _serves(root, source, requested)

    names = dict.fromkeys(name for bump in bumps for name in bump.files)
    headers = [name for name in names if name.endswith(_HEADERS)]
    # A header shows its error only in a source that includes it; one is enough.
    users = _users(filter(serves, _all(root)), headers) if headers else {}
    chosen: dict[Path, None] = {}
    for name in names:
        source = root / name if name.endswith(_SOURCES) else users.get(name)
        if source is not None and source.is_file() and serves(source):
            chosen[source] = None
    # Nearest bumps come first: what they changed is likeliest to differ.
    return tuple(chosen)[:_MOST]


def batches(root: Path, chosen: Iterable[Path], jobs: int) -> tuple[tuple[Path, ...], ...]:
    """Order sources by the cost of compiling them, in batches where a failure ends the search.

    Args:
        root: the checkout.
        chosen: the suspects.
        jobs: number of parallel compiles.
    """
    groups: dict[int, list[Path]] = {}
    # The first failures are the answer, so the cheapest come first; size is a good
    # enough measure of the time.
    for path in sorted(chosen, key=lambda source: source.stat().st_size):
        folders = path.relative_to(root).parts[:-1]
        # Sources of `python/` come after those of the compiler: they use another precompiled header, which
        # takes as long as several sources. All of the backends' are one batch at the end: whether a backend
        # can be left out is known only if everything that is shared compiles.
        of_backend = folders[:1] == ("third_party",)
        groups.setdefault(_BACKENDS if of_backend else int("python" in folders), []).append(path)
    return tuple(
        tuple(group[begin : begin + step])
        for number, group in sorted(groups.items())
        for step in (len(group) if number == _BACKENDS else max(jobs, 1),)
        for begin in range(0, len(group), step)
    )


def compiled_for(root: Path, files: Iterable[Path]) -> dict[Path, Path | None]:
    """Return the source to compile for each source and header among files of a checkout.

    A source stands for itself, a header for a source that includes it; None if none does.
    """
    paths = tuple(files)
    headers = [path.relative_to(root).as_posix() for path in paths if path.suffix in _HEADERS]
    users = _users(_all(root), headers) if headers else {}
    return {
        path: path if path.suffix in _SOURCES else users.get(path.relative_to(root).as_posix())
        for path in paths
        if path.suffix in (*_SOURCES, *_HEADERS) and path.is_file()
    }


def _serves(root: Path, source: Path, targets: Iterable[str]) -> bool:
    """Report whether a source belongs to a library, or to a program that is requested by name."""
    folders = source.relative_to(root).parts[:-1]
    return source.stem in targets or not {"bin", "unittest"} & set(folders)


def _users(sources: Iterable[Path], headers: Iterable[str]) -> Mapping[str, Path]:
    """Return a source for each header that includes it: its namesake, else the shortest."""
    texts = {path: untrusted.read_text(path) for path in sources}
    users = {}
    for header in headers:
        stem = Path(header).stem
        line = re.compile(rf'#\s*include\s+"[^"]*\b{re.escape(_included(header))}"')
        including = [path for path, text in texts.items() if line.search(text)]
        if including:
            # Its namesake includes it first, and so reports the header's own errors; else the
            # shortest, which compiles fastest.
            users[header] = min(including, key=lambda path: (path.stem != stem, len(texts[path])))
    return users


def _all(root: Path) -> Iterator[Path]:
    for folder in _FOLDERS:
        yield from sorted(path for path in (root / folder).rglob("*") if path.suffix in _SOURCES)


def _included(header: str) -> str:
    """Return the name of a header in sources: the part after the last `include/`."""
    return header.rpartition("include/")[2]


def explain(
    failure: CommandFailedError,
    step: BuildObjects,
    *,
    llvm: str,
    pin: str,
    checkout: TritonCheckout,
    backends: Iterable[str],
) -> StepError:
    """Return the error for all files that failed: its cause, and what can be built without them.

    Args:
        failure: from the runner.
        step: the step that failed.
        llvm: description of the LLVM in use.
        pin: description of the pin.
        checkout: Triton's sources.
        backends: the backends that are built.
    """
    from tritonsmith.build import diagnose  # noqa: PLC0415 - its patterns take time to compile

    failed = diagnose.failing(failure.output)
    verdicts = [
        diagnose.weighed(diagnose.diagnose(error.block, near_pin=True), dirty=checkout.dirty)
        for _, error in failed
    ]
    known = [verdict for verdict in verdicts if verdict and verdict.id == diagnose.of_near_pin().id]
    if not known:
        return diagnose.explain(failure, llvm=llvm, pin=pin, dirty=checkout.dirty)
    best = min(known, key=lambda verdict: bool(verdict.unsure))
    lines = [f"{best.in_words} [{best.id}]", *diagnose.llvm_and_pin(llvm, pin)]
    for _, error in failed:
        lines += error.lines[:_SHOWN]
    count = len(step.compiled_sources())
    what = f"{len(failed)} of the {count} files compiled first failed"
    # Inputs that are generated for these objects count too, such as tables of TableGen.
    if len(failed) > count:
        what = f"{len(failed)} steps failed that the {count} files compiled first need"
    first = failed[0][1]
    return StepError(
        f"{what}; the rest of the build was not started",
        where=f"{first.file}:{first.line}" if first.file else failure.log,
        why="\n".join(lines),
        hints=[
            *without(checkout, backends, [output for output, _ in failed]),
            *best.remedy,
            "to build anyway: --force",
            f"full log: {failure.log}",
        ],
    )


def without(checkout: TritonCheckout, backends: Iterable[str], failed: Iterable[str]) -> Iterator[str]:
    """Yield what to build instead, if all failures belong to backends that can be left out.

    Args:
        checkout: Triton's sources.
        backends: the backends that are built.
        failed: objects, as Ninja names them.
    """
    owners = {_backend(name) for name in failed}
    left = [name for name in backends if name not in owners]
    if "" in owners or not left:
        return
    chosen, gone = ",".join(left), " and ".join(sorted(owners))
    if any(checkout.has(f"bin-needs-{name}") for name in owners):
        yield (
            f"only files of {gone} fail, and bin/ needs {gone}; "
            f"to build only libtriton: --backends {chosen} --target triton"
        )
    else:
        yield f"only files of {gone} fail, so leave {gone} out: --backends {chosen}"


def _backend(output: str) -> str:
    """Return an object's folder in third_party/; empty for an object that all backends share."""
    top, _, rest = output.partition("/")
    return rest.partition("/")[0] if top == "third_party" else ""
