"""Nightly wheels of Triton between two releases, from an index: chosen by commit, never by PEP 440's order.

A nightly is named `3.5.0+gitabcdef12` or `3.6.0.dev20251012+gitabcdef12`: PEP 440 sorts the first by the
digits of the hash. History sorts them where a clone is given; else the dates of the second kind do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

from packaging import tags
from packaging.utils import InvalidWheelFilename, parse_wheel_filename
from packaging.version import Version

from tritonsmith.compiler.tritons import Triton
from tritonsmith.core.envs import session, settings, workspace
from tritonsmith.core.envs.workspace import EnvDir
from tritonsmith.core.errors import DownloadError, SmithError, UsageError
from tritonsmith.core.plan import download
from tritonsmith.wheels import venv

NAMES = ("triton", "pytorch-triton", "triton-nightly")  # of one package, by who builds it and when
_GIT = re.compile(r"(?:^|\.)(?:git)?(?P<commit>[0-9a-f]{7,40})$")
_LIMIT = 64 << 20  # bytes of an index
_UNSAFE = re.compile(r"[^\w.]+")


@dataclass(frozen=True)
class NightlyWheel:
    """A wheel of an index.

    Attributes:
        version: as its name has it.
        url: of the wheel, with the checksum if the index has it.
        commit: of Triton, as many digits as are known; empty if its name has none.
    """

    version: Version
    url: str
    commit: str = ""

    @property
    def label(self) -> str:
        """Its name in a bisect."""
        return str(self.version)

    @property
    def env(self) -> EnvDir:
        """Its environment, made or not."""
        return workspace.default().env(f"nightly-{_UNSAFE.sub('-', self.label)}")

    @property
    def spec(self) -> Triton:
        """Its Triton, once it is installed."""
        return Triton(self.label, python=str(self.env.python))

    def install(self) -> str:
        """Install it if needed; the reason if that fails."""
        base = venv.base_interpreter(settings.load("wheel").python.interpreter)
        made = venv.plan(self.env, base, (self.url,))
        try:
            with session.opened("up", self.env.name) as running:
                running.run(made)
        except SmithError as error:
            return ": ".join(filter(None, (error.what, (error.why or "").strip().partition("\n")[0])))
        return ""


class _Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += (value for name, value in attrs if tag == "a" and name == "href" and value)


def read(url: str) -> tuple[NightlyWheel, ...]:
    """The nightlies of an index that this machine can install, the best wheel of each version.

    Args:
        url: of an index with a page for each project (PEP 503), of such a page, or of one with links.

    Raises:
        UsageError: no URL, or the page has no nightly of Triton.
        DownloadError: it cannot be read.
    """
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise UsageError(
            f"--nightlies is no URL: {url}", hints=["--nightlies https://..., an index or a page"]
        )
    page = url if url.endswith((".html", ".htm", "/")) else f"{url}/"
    try:
        where = urljoin(page, "triton/")
        links = _links(where) or _links(page)
    except DownloadError:  # no index of many projects
        links = _links(page)
    minor = venv.base_interpreter(settings.load("wheel").python.interpreter).minor
    python = tuple(int(part) for part in minor.split("."))
    rank = {
        tag: number for number, tag in enumerate((*tags.cpython_tags(python), *tags.compatible_tags(python)))
    }
    best: dict[Version, tuple[int, NightlyWheel]] = {}
    for link in links:
        for fit, wheel in _wheel(link, rank):
            if wheel.version not in best or fit < best[wheel.version][0]:
                best[wheel.version] = (fit, wheel)
    if not best:
        what = f"no nightly of Triton for Python {minor}"
        raise UsageError(what, where=page, why=f"{len(links)} links", hints=[f"names: {', '.join(NAMES)}"])
    return tuple(wheel for _, wheel in best.values())


def by_history(wheels: Iterable[NightlyWheel], commits: Sequence[str]) -> tuple[NightlyWheel, ...]:
    """Return the nightlies of commits, in their order, with whole hashes; the first is the good end's."""
    found: dict[str, NightlyWheel] = {}
    for wheel in wheels:
        commit = next((one for one in commits[1:] if wheel.commit and one.startswith(wheel.commit)), "")
        if commit and commit not in found:
            found[commit] = NightlyWheel(wheel.version, wheel.url, commit)
    return tuple(found[commit] for commit in commits if commit in found)


def by_date(wheels: Iterable[NightlyWheel], good: str, bad: str) -> tuple[NightlyWheel, ...]:
    """Return the nightlies towards a release after `good`, up to `bad`, by the dates in their versions."""
    between = (
        wheel
        for wheel in wheels
        if wheel.version.dev and Version(good) < Version(wheel.version.base_version) <= Version(bad)
    )
    return tuple(sorted(between, key=lambda wheel: (wheel.version.dev or 0, wheel.label)))


def installer(wheels: Sequence[NightlyWheel]) -> Callable[[Triton], str]:
    """Return a function that installs a nightly, and returns why that failed; empty for other specs."""
    known = {wheel.label: wheel for wheel in wheels}
    return lambda triton: known[triton.label].install() if triton.label in known else ""


def _links(page: str) -> list[str]:
    links = _Links()
    links.feed(download.text(page, _LIMIT))
    return [urljoin(page, link) for link in links.found if ".whl" in link]


def _wheel(link: str, rank: dict[tags.Tag, int]) -> Iterator[tuple[int, NightlyWheel]]:
    """The wheel behind a link, and how well it fits; nothing if it is no nightly, or does not fit."""
    try:
        name, version, _, given = parse_wheel_filename(unquote(Path(urlsplit(link).path).name))
    except InvalidWheelFilename:
        return
    commit = _GIT.search(version.local or "")
    fits = [rank[tag] for tag in given if tag in rank]
    if name in NAMES and fits and (commit or version.dev):
        yield min(fits), NightlyWheel(version, link, commit["commit"] if commit else "")
