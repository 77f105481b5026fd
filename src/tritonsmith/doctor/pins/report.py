"""Output of `pins`: the table of releases, one release in detail, readings of other sources; and `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tritonsmith.core import configs
from tritonsmith.core.command_line import command
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.doctor.pins.install import InstalledTorch
from tritonsmith.doctor.pins.read_upstream import Reading
from tritonsmith.doctor.pins.releases_with import Holders, Holding, Picks, undecided
from tritonsmith.facts import pytorch_pins
from tritonsmith.facts.pytorch_pins import (
    CHANNELS,
    UNKNOWN,
    WHEEL,
    PackageRelease,
    Pin,
    PyTorchRelease,
    WheelName,
)

_SHORT = 8  # digits, as in the `+git` suffix of a version
_WIDE = 16
_COLUMNS = ("cuda", WHEEL, "rocm", "xpu")
# For the question which releases have a commit, `before` and `apart` are one answer; `--json` has both.
_RELATION_WORDS = {
    "at": "is it",
    "after": "holds",
    "cherry-picked": "picked",
    "reverted": "reverted",
    "before": "lacks",
    "apart": "lacks",
    "undecided": "?",
}


def table(releases: Iterable[PyTorchRelease]) -> Grid:
    """Return one line per release: the pin and the wheel, each with its LLVM."""
    rows = [
        (
            release.version,
            release.cuda.version or UNKNOWN,
            _short(release.cuda.commit),
            release.cuda.grade.removeprefix("pin-file-").replace("-", " "),
            _short(release.cuda.llvm),
            _short(release.wheel.commit),
            _short(release.wheel.llvm) + (" !" if release.llvms_differ else ""),
        )
        for release in releases
    ]
    head = ["PyTorch", "Triton", "pin", "pin file", "LLVM at pin", "wheel", "LLVM in wheel"]
    return tables.plain("Triton of each PyTorch release (CUDA)", head, rows)


def remarks(releases: Iterable[PyTorchRelease]) -> Iterator[str]:
    """Yield the remarks below the table."""
    # Two LLVMs, two purposes: the sources at the pin compile with the LLVM that they pin, and the wheel runs
    # the code of its own.
    rows = tuple(releases)
    differ = [release.version for release in rows if release.llvms_differ]
    with_candidates = [release.version for release in rows if release.cuda.candidates]
    if differ:
        yield f"!  {', '.join(differ)}: the LLVM in the wheel is NOT the LLVM at the pin"
    yield "To build the Triton of a PyTorch from source, use the pin and the LLVM at the pin."
    yield "To describe or debug an installed wheel, use the wheel and the LLVM in the wheel."
    if with_candidates:
        yield f"Some unknown pins have unconfirmed candidates: {command('pins', pytorch=with_candidates[-1])}"


def detail(release: PyTorchRelease) -> Iterator[str]:
    """Yield all details of a release."""
    yield f"PyTorch {release.version}"
    yield ""
    yield "Pin files: what PyTorch's CI, nightlies and `make triton` build"
    titles = pytorch_pins.titles()
    for channel in CHANNELS:
        yield from _channel(titles[channel], release.own_pins[channel])
    yield ""
    yield "The published wheel `triton`: what pip installs with it"
    if release.cuda.requires:
        yield f"  {'required as':<{_WIDE}}{release.cuda.requires}"
    yield from _commits(release.wheel)
    yield ""
    yield from _which(release)
    yield ""
    yield "Wheel names (each wheel has the package `triton`)"
    names = pytorch_pins.wheel_names(release.version)
    yield from (f"  {titles[name.channel]:<8} {_called(name)}" for name in names)
    # Leaving out a pinned channel whose wheel's name is unknown would read as if it had no wheel.
    nameless = [
        titles[channel]
        for channel in CHANNELS
        if release.own_pins[channel] and not pytorch_pins.wheel_name(release.version, channel)
    ]
    yield from (f"  {title:<8} {UNKNOWN} for this release" for title in nameless)
    yield ""
    yield from _grades(release)


def _channel(title: str, pin: Pin | None) -> Iterator[str]:
    if pin is None:
        yield f"  {title:<5} no pin known"
        return
    if pin.same_file:
        yield f"  {title:<5} the same file as CUDA"
        if pin.requires:
            yield f"  {'required as':<{_WIDE}}{pin.requires}"
        yield from _sources(pin)
        return
    yield f"  {title:<5} Triton {pin.version or UNKNOWN}"
    yield from _commits(pin)


def _commits(pin: Pin) -> Iterator[str]:
    how = f": {pin.how}" if pin.how else ""
    yield f"  {'commit':<{_WIDE}}{f'{pin.commit} ({pin.grade}{how})' if pin.commit else UNKNOWN}"
    yield from (f"  {'':<{_WIDE}}{name} unconfirmed candidate" for name in pin.candidates)
    yield f"  {'LLVM':<{_WIDE}}{f'{pin.llvm} ({pin.llvm_grade})' if pin.llvm else UNKNOWN}"
    yield from _sources(pin)


def _sources(pin: Pin) -> Iterator[str]:
    if pin.note:
        yield f"  {'note':<{_WIDE}}{pin.note}"
    if pin.source:
        yield f"  {'seen in':<{_WIDE}}{'; '.join(pin.source)}"


def _which(release: PyTorchRelease) -> Iterator[str]:
    """Compare pin and wheel, and tell what each is for."""
    cuda, wheel = release.cuda, release.wheel
    if release.llvms_differ:
        yield "THE TWO LLVMs DIFFER: the wheel was not built with the LLVM at the pin."
    # None is not "no": one of the two is unknown.
    elif release.llvms_differ is None:
        yield "Whether the two LLVMs differ is unknown."
    else:
        yield "Both have the same LLVM."
    yield "Which to use:"
    yield "  to build the Triton that belongs to this PyTorch from source"
    yield f"    commit {cuda.commit or UNKNOWN}, LLVM {cuda.llvm or UNKNOWN}"
    if cuda.commit:
        yield f"    git checkout {cuda.commit[: _SHORT + 2]} && invoke setup-mlir && invoke build-triton"
    yield "  to describe or debug the installed wheel"
    yield f"    commit {wheel.commit or UNKNOWN}, LLVM {wheel.llvm or UNKNOWN}"


def _called(name: WheelName) -> str:
    note = f"; {name.note}" if name.note else ""
    return f"{name.name:<20} {name.kind}, from {name.place}{note}"


def _grades(release: PyTorchRelease) -> Iterator[str]:
    pins = [pin for pin in release.own_pins.values() if pin is not None]
    used = {grade for pin in pins for grade in (pin.grade, pin.llvm_grade)} - {UNKNOWN}
    yield from (f"{grade}: {text}" for grade, text in pytorch_pins.grades().items() if grade in used)


def names() -> Grid:
    """Return the wheel names by channel and era."""
    titles = pytorch_pins.titles()
    rows = [
        (titles[name.channel], name.kind, name.name, f"{name.since} - {name.until}", name.place)
        for name in pytorch_pins.wheel_names()
    ]
    head = ["channel", "kind", "wheel", "PyTorch", "from"]
    return tables.plain("Wheel names; every wheel has the package `triton`", head, rows)


def indexes() -> Iterator[str]:
    """Yield the URL of each index that `names` mentions."""
    for place, url in configs.load(pytorch_pins.CONFIG)["index"].items():
        yield f"{place}: {url}"


def live(reading: Reading, release: PyTorchRelease | None) -> Iterator[str]:
    """Yield the pins of a PyTorch commit, and a comparison with the table's row of the same release."""
    yield f"PyTorch {reading.ref} = {reading.commit} ({reading.committed[:10]})"
    yield f"of {reading.repository}"
    for pin in reading.pins:
        yield ""
        yield f"  {pin.title:<8} Triton {pin.version or UNKNOWN}"
        if pin.same_as:
            yield f"  {'file':<{_WIDE}}the same as {pytorch_pins.titles()[pin.same_as]}"
            continue
        yield f"  {'commit':<{_WIDE}}{pin.commit}"
        yield f"  {'file':<{_WIDE}}{pin.file}"
        yield f"  {'LLVM':<{_WIDE}}{f'{pin.llvm} (from {pin.llvm_from})' if pin.llvm else UNKNOWN}"
    if release is not None:
        yield ""
        yield from _against(reading, release)


def _against(reading: Reading, release: PyTorchRelease) -> Iterator[str]:
    yield f"The table, for PyTorch {release.version}:"
    for channel in CHANNELS:
        pin, row = reading.pin(channel), release.pin(channel)
        if pin is None or row is None:
            continue
        if not row.commit:
            verdict = "unknown in the table"
            if pin.commit in row.candidates:
                verdict += ", and one of its candidates"
        elif row.commit == pin.commit:
            verdict = f"the same ({row.grade})"
        else:
            verdict = f"DIFFERS: {row.commit} ({row.grade})"
        yield f"  {pin.title:<8} {verdict}"


def installed(interpreter: InstalledTorch) -> Iterator[str]:
    """Yield a torch, its Triton, and whether they belong together."""
    torch, release = interpreter.torch, interpreter.release
    yield f"{interpreter.python}"
    yield f"  torch   {torch.version}, git {torch.git_version or UNKNOWN}" if torch else "  torch   none"
    for owner in interpreter.owners:
        yield f"  Triton  {owner.name} {owner.version}"
        if not torch:
            yield f"  commit  {owner.commit or UNKNOWN}{f' ({owner.known_by})' if owner.known_by else ''}"
            yield f"  LLVM    {owner.llvm or UNKNOWN}"
    # Nothing to agree with; the other direction can still be answered, which PyTorch has this Triton.
    if torch is None:
        yield ""
        ref = interpreter.owners[0].commit or interpreter.owners[0].version
        yield f"PyTorch releases that have it: {command('pins', triton=ref)}, in a clone of Triton"
        return
    if not interpreter.owners:
        yield "  Triton  none"
    verdict = {True: "yes", False: "NO", None: "undecided"}[interpreter.agrees]
    yield f"  agrees  {verdict}"
    yield from (f"          {reason}" for reason in interpreter.reasons)
    yield ""
    if release is None:
        ref = torch.git_version or "COMMIT"
        yield f"The pin of this torch: {command('pins', live=True, ref=ref)}"
    else:
        yield from detail(release)


def holders(answer: Holders) -> Iterator[str]:
    """Yield a summary: the releases that have the commit."""
    yield f"{answer.commit} ({answer.committed[:10]})"
    yield answer.subject
    yield ""
    for where, title in (("cuda", "Pins for CUDA"), (WHEEL, "Published wheels")):
        held = [
            holding.release
            for holding in answer.holdings
            if holding.where == where and holding.standing.holds
        ]
        yield f"{title} that have it: {', '.join(held) or 'none'}"


def holdings(answer: Holders) -> Grid:
    """Return a table with one line per release and one column per kind of pin."""
    by_place = {(holding.release, holding.where): holding for holding in answer.holdings}
    rows = []
    for release in pytorch_pins.releases():
        cells = [_cell(release, where, by_place.get((release.version, where))) for where in _COLUMNS]
        rows.append((release.version, *cells))
    titles = {**pytorch_pins.titles(), WHEEL: "wheel"}
    return tables.plain("", ["PyTorch", *(titles[where] for where in _COLUMNS)], rows)


def _cell(release: PyTorchRelease, where: str, holding: Holding | None) -> str:
    # A channel that shares CUDA's file was compared once, as CUDA (`find_releases` leaves it out).
    if holding is None:
        return "as CUDA" if where == "rocm" and release.rocm.same_file else "-"
    relation = _RELATION_WORDS[holding.standing.relation]
    return f"{_short(holding.pin)} {relation}" if holding.pin else relation


def open_questions(answer: Holders) -> Iterator[str]:
    """Yield the undecided pins, with reasons."""
    titles = {**pytorch_pins.titles(), WHEEL: "wheel"}
    rows = undecided(answer)
    if rows:
        yield f"Undecided ({len(rows)}):"
    yield from (
        f"  {holding.release:<7} {titles[holding.where]:<6} {holding.standing.why}" for holding in rows
    )
    # A known pin may be undecided because the clone lacks its commit: then fetching helps.
    if any(holding.pin for holding in rows):
        yield "  A clone of triton-lang/triton with its release branches has more pins: git fetch origin"
    for relation, title in (("cherry-picked", "Cherry-picked:"), ("reverted", "Reverted:")):
        matching = [holding for holding in answer.holdings if holding.standing.relation == relation]
        if matching:
            yield title
        yield from (
            f"  {holding.release:<7} {titles[holding.where]:<6} {holding.standing.why}"
            for holding in matching
        )


def picked(branch: Picks) -> Iterator[str]:
    """Yield a summary: the branch, its branch point, and how many commits of main are in it."""
    yield f"{branch.branch}, at {_short(branch.tip)}"
    yield f"cut from {branch.main} at {branch.point}"
    alone = len(branch.only_here)
    yield f"{len(branch.picks)} commits since, {len(branch.picks) - alone} of them known on main, {alone} not"
    yield ""


def picks(branch: Picks) -> Grid:
    """Return a table with one line per commit, oldest first."""
    rows = [
        (
            _short(pick.commit),
            pick.date[:10],
            pick.subject,
            f"{_short(pick.original) if pick.original else ''} {pick.how}".strip() or "-",
        )
        for pick in branch.picks
    ]
    return tables.plain("", ["commit", "date", "subject", "on main"], rows)


def packages(releases: Iterable[PackageRelease]) -> Grid:
    """Return a table of a package's releases: the torch, that torch's Triton, and the included kernels."""
    by_version = {release.version: release for release in pytorch_pins.releases()}
    rows = []
    for package in releases:
        torch = by_version.get(package.torch)
        triton = (torch.cuda.version if torch else "") or UNKNOWN
        commit, llvm = (torch.wheel.commit, torch.wheel.llvm) if torch else ("", "")
        names = (f"{package.package} {package.version}", package.torch, triton)
        rows.append((*names, _short(commit), _short(llvm), package.triton_kernels or "-"))
    titles = ["package", "PyTorch", "Triton", "wheel's commit", "LLVM", "triton_kernels"]
    return tables.plain("", titles, rows)


def _short(commit: str) -> str:
    return commit[:_SHORT] or UNKNOWN


# The forms of `pins --json`, which docs/pins.md documents.

SCHEMA = 1


def table_json(releases: Iterable[PyTorchRelease]) -> dict[str, Any]:
    """Return all releases, the meaning of the grades, and the wheel names of all eras."""
    return {
        **_head("table"),
        "releases": [release_table(release) for release in releases],
        "grades": pytorch_pins.grades(),
        "wheel_names": [asdict(name) for name in pytorch_pins.wheel_names()],
    }


def release_json(release: PyTorchRelease, note: str) -> dict[str, Any]:
    """Return one release."""
    return {**_head("release"), "note": note, "release": release_table(release)}


def live_json(reading: Reading) -> dict[str, Any]:
    """Return the pins of a commit of PyTorch."""
    return {**_head("live"), **asdict(reading), "pins": [_nulls(asdict(pin)) for pin in reading.pins]}


def update_json(file: Path, changes: Iterable[str], missing: Iterable[str]) -> dict[str, Any]:
    """Return the changes to the table."""
    return {**_head("update"), "file": str(file), "changes": list(changes), "missing": list(missing)}


def installed_json(interpreter: InstalledTorch) -> dict[str, Any]:
    """Return a torch and its Triton."""
    return {
        **_head("installed"),
        "python": str(interpreter.python),
        "torch": _nulls(asdict(interpreter.torch)) if interpreter.torch else None,
        "triton": [_nulls(asdict(owner)) for owner in interpreter.owners],
        "agrees": interpreter.agrees,
        "reasons": list(interpreter.reasons),
        "release": release_table(interpreter.release) if interpreter.release else None,
    }


def holders_json(answer: Holders) -> dict[str, Any]:
    """Return the releases that have a commit."""
    return {
        **_head("holders"),
        "commit": answer.commit,
        "subject": answer.subject,
        "committed": answer.committed,
        "pins": [
            {
                "release": holding.release,
                "where": holding.where,
                "pin": holding.pin or None,
                "relation": holding.standing.relation,
                "holds": holding.standing.holds,
                "why": holding.standing.why,
            }
            for holding in answer.holdings
        ],
    }


def picks_json(branch: Picks) -> dict[str, Any]:
    """Return a release branch, and its commits since its branch point."""
    return {
        **_head("picks"),
        "branch": branch.branch,
        "tip": branch.tip,
        "main": branch.main,
        "branch_point": branch.point,
        "picks": [{name: value or None for name, value in asdict(pick).items()} for pick in branch.picks],
    }


def packages_json(releases: Iterable[PackageRelease]) -> dict[str, Any]:
    """Return the releases of a package, and the torch that each requires."""
    return {**_head("packages"), "releases": [asdict(package) for package in releases]}


def release_table(release: PyTorchRelease) -> dict[str, Any]:
    """Return a release: its channels, its wheel, and the wheel names."""
    return {
        "pytorch": release.version,
        **{where: _nulls(asdict(pin)) if pin else None for where, pin in release.own_pins.items()},
        "llvms_differ": release.llvms_differ,
        "wheel_names": [asdict(name) for name in pytorch_pins.wheel_names(release.version)],
    }


def _nulls(table: dict[str, Any]) -> dict[str, Any]:
    """Replace empty texts, which mean unknown, by null."""
    return {key: None if value == "" else value for key, value in table.items()}


def _head(kind: str) -> dict[str, Any]:
    # One command prints eight forms, depending on its flags: `kind` tells a program which one it got.
    return {"schema": SCHEMA, "kind": kind}
