"""Files to and from object stores (`s3://`, `gs://` ...) through fsspec; HTTP is in `download.py`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tritonsmith.core import redact
from tritonsmith.core.errors import DownloadError, SmithError, StepError, did_you_mean
from tritonsmith.core.plan import download
from tritonsmith.core.plan.steps.base import Step, StepTools

_TEXT = 1 << 16  # bytes


@dataclass(frozen=True)
class Upload(Step):
    """Upload a file to an object store."""

    source: Path
    url: str

    def shell(self) -> list[str]:
        return [f"# {shlex.quote(str(self.source))} goes to {redact.hidden(self.url)}"]

    def act(self, tools: StepTools) -> None:
        with opened(self.url) as (system, path):
            system.put_file(str(self.source), path, callback=_callback(tools, self.title))

    @property
    def title(self) -> str:
        return f"upload {self.source.name}"


@dataclass(frozen=True)
class Obtain(Step):
    """Download a file from an object store; `DEST.partial` until its checksum, 64 hex digits, is verified."""

    url: str
    sha256: str
    dest: Path

    def shell(self) -> list[str]:
        return [f"# {redact.hidden(self.url)} goes to {shlex.quote(str(self.dest))}"]

    def act(self, tools: StepTools) -> None:
        def transfer(partial: Path) -> None:
            with opened(self.url) as (system, path):
                # The size is known before the first byte, as for http.
                download.check_room(redact.hidden(self.url), partial, 0, system.size(path))
                try:
                    system.get_file(path, str(partial), callback=_callback(tools, self.title))
                # fsspec cannot resume: half a file that looks complete would fail at its checksum
                # only after another download.
                except BaseException:
                    partial.unlink(missing_ok=True)
                    raise

        hint = "an upload may be in progress: try again later"
        download.receive(redact.hidden(self.url), self.dest, self.sha256, transfer, hint)

    @property
    def title(self) -> str:
        return f"download {self.dest.name}"


def check(url: str) -> None:
    """Check that a client for a URL is installed, before any transfer. Contacts no server.

    Raises:
        SmithError: no client is installed.
    """
    with opened(url):
        pass


def text(url: str) -> str:
    """Return the content of a small text file in an object store.

    Raises:
        DownloadError: the file cannot be read.
    """
    with opened(url) as (system, path):
        content: bytes = system.cat_file(path, 0, _TEXT)
        return content.decode("utf-8", errors="replace")


@contextmanager
def opened(url: str) -> Iterator[tuple[Any, str]]:
    """Yield the object store of a URL, and the path in it; errors of the client become errors of the tool.

    Raises:
        SmithError: there is no client for that kind of URL.
        DownloadError: the store refused, or cannot be reached.
    """
    import fsspec  # noqa: PLC0415 - local stores do without

    shown = redact.hidden(url)
    scheme = url.partition("://")[0]
    try:
        system, path = fsspec.core.url_to_fs(url)
    except ImportError as error:
        raise SmithError(
            f"the client for {scheme}:// is not installed",
            where=shown,
            why=str(error),
            hints=["for s3: pip install 'tritonsmith[s3]' (or s3fs), into the Python that runs the tool"],
        ) from error
    except ValueError as error:
        known = fsspec.available_protocols()
        raise SmithError("unknown kind of URL", where=shown, hints=did_you_mean(scheme, known)[:1]) from error
    # Clients of fsspec raise any exception for a missing project, region or user name.
    except Exception as error:
        why = redact.hidden(str(error)) or type(error).__name__
        hints = ["use s3://, gs:// or another store of files"]
        raise SmithError(f"{scheme}:// needs more than a URL", where=shown, why=why, hints=hints) from error
    try:
        yield system, str(path)
    except SmithError:
        raise
    except FileNotFoundError as error:
        raise DownloadError("the file does not exist", where=shown, why=str(error) or None) from error
    # botocore, gcsfs and adlfs have trees of exceptions of their own, with no common base.
    except Exception as error:
        raise StepError(
            f"the {scheme}:// transfer failed",
            where=shown,
            why=redact.hidden(str(error)) or type(error).__name__,
            hints=["check the credentials that the client uses (AWS_PROFILE, AWS_ENDPOINT_URL ...)"],
        ) from error


def _callback(tools: StepTools, title: str) -> Any:
    from fsspec.callbacks import Callback  # noqa: PLC0415

    class Progress(Callback):  # type: ignore[misc]
        def call(self, *_: Any, **__: Any) -> None:
            tools.update(self.value, self.size, title)

    return Progress()
