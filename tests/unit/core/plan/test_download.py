from __future__ import annotations

import hashlib
import resource
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tritonsmith.core.errors import DownloadError
from tritonsmith.core.plan import download

CONTENT = bytes(range(256)) * 8192  # two reads
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@dataclass
class Site:
    """A web server on this machine, and how it behaves.

    Attributes:
        ranges: it knows about Range requests.
        cut: it breaks off after so many bytes of the body.
        content: what it serves.
        says: how many bytes it announces; None for those that it has, less than 0 for no number.
        endless: it never stops sending.
        requests: method, path and headers of what was asked for.
    """

    url: str = ""
    ranges: bool = True
    cut: int | None = None
    content: bytes = CONTENT
    says: int | None = None
    endless: bool = False
    requests: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)

    @property
    def asked_ranges(self) -> list[str | None]:
        return [headers.get("range") for _, _, headers in self.requests]


def handler(site: Site) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            site.requests.append((self.command, self.path, headers))
            if self.path == "/moved":
                self.send_response(302)
                self.send_header("Location", "/file")
                self.end_headers()
            elif self.path != "/file":
                self.send_error(404)
            else:
                self._serve(headers.get("range"))

        do_HEAD = do_GET  # noqa: N815 - the library's name

        def _serve(self, asked: str | None) -> None:
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and site.ranges else 0
            if start >= len(site.content):
                self.send_error(416)
                return
            body = site.content[start:]
            self.send_response(206 if start else 200)
            if site.says is None or site.says >= 0:
                self.send_header("Content-Length", str(len(body) if site.says is None else site.says))
            self.end_headers()
            if self.command == "GET":
                with suppress(ConnectionError):
                    self.wfile.write(body[: site.cut])
                    while site.endless:
                        self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            pass

    return Handler


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()
    with ThreadingHTTPServer(("127.0.0.1", 0), handler(site)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        site.url = f"http://127.0.0.1:{server.server_port}"
        yield site
        server.shutdown()
        thread.join()


@pytest.fixture
def dest(tmp_path: Path) -> Path:
    return tmp_path / "downloads" / "file.tar"


def partial(dest: Path) -> Path:
    return dest.with_name("file.tar.partial")


def fetch(url: str, dest: Path, sha256: str = SHA256) -> list[tuple[int, int | None]]:
    seen: list[tuple[int, int | None]] = []
    download.fetch(url, dest, sha256=sha256, progress=lambda done, total: seen.append((done, total)))
    return seen


def test_a_whole_file(site: Site, dest: Path) -> None:
    seen = fetch(f"{site.url}/file", dest, SHA256.upper())
    assert dest.read_bytes() == CONTENT
    assert not partial(dest).exists()
    assert seen[-1] == (len(CONTENT), len(CONTENT))
    assert seen == sorted(seen)
    assert site.asked_ranges == [None]


def test_nothing_is_asked_for_what_is_there(site: Site, dest: Path) -> None:
    dest.parent.mkdir()
    dest.write_bytes(CONTENT)
    fetch(f"{site.url}/file", dest)
    assert site.requests == []


def test_a_wrong_file_with_the_right_name_is_replaced(site: Site, dest: Path) -> None:
    dest.parent.mkdir()
    dest.write_bytes(b"old")
    fetch(f"{site.url}/file", dest)
    assert dest.read_bytes() == CONTENT


@pytest.mark.parametrize("ranges", [True, False], ids=["server knows ranges", "server does not"])
def test_a_partial_file_is_resumed(site: Site, dest: Path, ranges: bool) -> None:
    site.ranges = ranges
    dest.parent.mkdir()
    partial(dest).write_bytes(CONTENT[:1000])
    seen = fetch(f"{site.url}/file", dest)
    assert dest.read_bytes() == CONTENT
    assert site.asked_ranges == ["bytes=1000-"]
    assert (seen[0][0] > 1000, seen[-1]) == (True, (len(CONTENT), len(CONTENT)))


def test_a_complete_partial_file_only_gets_its_name(site: Site, dest: Path) -> None:
    dest.parent.mkdir()
    partial(dest).write_bytes(CONTENT)
    assert fetch(f"{site.url}/file", dest) == []
    assert dest.read_bytes() == CONTENT
    assert site.asked_ranges == [f"bytes={len(CONTENT)}-"]


def test_a_broken_transfer_is_kept_and_goes_on(site: Site, dest: Path) -> None:
    site.cut = 70_000
    with pytest.raises(DownloadError, match=f"after 70000 of {len(CONTENT)} bytes"):
        fetch(f"{site.url}/file", dest)
    assert not dest.exists()
    assert partial(dest).stat().st_size == 70_000
    site.cut = None
    fetch(f"{site.url}/file", dest)
    assert dest.read_bytes() == CONTENT
    assert site.asked_ranges == [None, "bytes=70000-"]


@pytest.mark.parametrize("before", [b"", b"of another file", CONTENT + b"too long"])
def test_a_file_that_was_not_promised_is_thrown_away(site: Site, dest: Path, before: bytes) -> None:
    dest.parent.mkdir()
    partial(dest).write_bytes(before)
    site.content = CONTENT if before else b"something else"
    with pytest.raises(DownloadError, match="wrong checksum") as caught:
        fetch(f"{site.url}/file", dest)
    assert f"it should be {SHA256}" in str(caught.value)
    assert list(dest.parent.iterdir()) == []
    site.content = CONTENT
    fetch(f"{site.url}/file", dest)
    assert dest.read_bytes() == CONTENT


def test_a_redirect_is_followed_and_keeps_the_range(site: Site, dest: Path) -> None:
    dest.parent.mkdir()
    partial(dest).write_bytes(CONTENT[:1000])
    fetch(f"{site.url}/moved", dest)
    assert dest.read_bytes() == CONTENT
    assert site.asked_ranges == ["bytes=1000-", "bytes=1000-"]


def test_404(site: Site, dest: Path) -> None:
    with pytest.raises(DownloadError, match="the server answered 404 Not Found") as caught:
        fetch(f"{site.url}/nothing", dest)
    assert caught.value.where == f"{site.url}/nothing"
    assert list(dest.parent.iterdir()) == []


def test_unreachable(dest: Path) -> None:
    with pytest.raises(DownloadError, match="Connection refused") as caught:
        fetch("http://127.0.0.1:1/file", dest)
    assert str(dest) in caught.value.hints[1]


@pytest.mark.parametrize("url", ["not a url", "nonsense://x/file", "http://[::1/file", ""])
def test_a_url_that_is_none(url: str, dest: Path) -> None:
    with pytest.raises(DownloadError, match="cannot download"):
        fetch(url, dest)
    assert not dest.exists()


def test_a_file_url(dest: Path, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.write_bytes(CONTENT)
    fetch(source.as_uri(), dest)
    assert dest.read_bytes() == CONTENT
    with pytest.raises(DownloadError, match="No such file"):
        fetch((tmp_path / "missing").as_uri(), dest.with_name("other"))


def test_reachable_asks_for_the_head_only(site: Site) -> None:
    assert download.reachable(f"{site.url}/file") is None
    assert download.reachable(f"{site.url}/nothing") == "the server answered 404 Not Found"
    assert [method for method, _, _ in site.requests] == ["HEAD", "HEAD"]


@pytest.mark.parametrize("url", ["http://127.0.0.1:1/file", "not a url"])
def test_reachable_says_why_not(url: str) -> None:
    assert download.reachable(url)


@pytest.fixture
def small_disk(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Give the disk so many free bytes, of 100 MB, before the file; only the number is made up."""

    def shrink(free: int) -> None:
        def usage(folder: Path) -> tuple[int, int, int]:
            used = sum(path.stat().st_size for path in Path(folder).iterdir())
            return _Usage(100_000_000, used, free - used)

        monkeypatch.setattr(shutil, "disk_usage", usage)

    return shrink


class _Usage(NamedTuple):
    total: int
    used: int
    free: int


def test_an_answer_without_end_stops_before_the_disk_is_full(
    site: Site, dest: Path, small_disk: Callable[[int], None]
) -> None:
    site.says, site.endless = -1, True
    small_disk(20_000_000)
    with pytest.raises(DownloadError, match="no end is in sight"):
        fetch(f"{site.url}/file", dest)
    assert [*dest.parent.iterdir()] == []


def test_an_answer_without_end_stops_at_the_limit(
    site: Site, dest: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site.says, site.endless = -1, True
    monkeypatch.setenv("TRITONSMITH_UNPACK_LIMIT", "10MB")
    with pytest.raises(DownloadError, match="larger than 10,000,000 bytes"):
        fetch(f"{site.url}/file", dest)
    assert [*dest.parent.iterdir()] == []


def test_what_does_not_fit_is_not_begun(site: Site, dest: Path, small_disk: Callable[[int], None]) -> None:
    site.says = 1 << 40
    with pytest.raises(DownloadError, match="larger than"):
        fetch(f"{site.url}/file", dest)
    site.says = None
    small_disk(1_000_000)
    with pytest.raises(DownloadError, match=r"bytes are to come, and the disk has 1,000,000 left"):
        fetch(f"{site.url}/file", dest)
    assert [*dest.parent.iterdir()] == []


def test_what_came_before_stays_where_the_rest_does_not_fit(
    site: Site, dest: Path, small_disk: Callable[[int], None]
) -> None:
    dest.parent.mkdir()
    partial(dest).write_bytes(CONTENT[:1000])
    small_disk(1_000_000)
    with pytest.raises(DownloadError, match="are to come"):
        fetch(f"{site.url}/file", dest)
    assert partial(dest).read_bytes() == CONTENT[:1000]


def test_a_full_disk_is_not_kept_full(site: Site, dest: Path) -> None:
    """A file size limit, which plays the disk: the write fails, and what came goes."""
    site.says, site.endless = -1, True
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (5_000_000, hard))
    try:
        with pytest.raises(DownloadError, match="File too large"):
            fetch(f"{site.url}/file", dest)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [*dest.parent.iterdir()] == []


def test_the_length_is_unknown_and_the_file_right(site: Site, dest: Path) -> None:
    site.says = -1
    assert fetch(f"{site.url}/file", dest)[-1] == (len(CONTENT), None)
    assert dest.read_bytes() == CONTENT
