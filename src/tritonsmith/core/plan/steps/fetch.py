"""Fetch files: from git, the web, object stores, the package index, and out of archives.

A file or folder gets its final name only when it is complete and verified.
"""

from __future__ import annotations

import functools
import re
import shlex
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit, urlunsplit

from packaging.requirements import InvalidRequirement, Requirement

from tritonsmith.core import command_line, process, redact
from tritonsmith.core.errors import DownloadError, SmithError, StepError, did_you_mean
from tritonsmith.core.plan import archive, download, files, locks
from tritonsmith.core.plan.steps.base import Step, StepTools, make_parent, quote

_WEB = ("http", "https")  # the login of another URL, `ssh://git@host`, is no secret
_SMALL_TEXT = 1 << 16  # bytes
# The command line of uv that installs files of this machine, and nothing else.
UV_INSTALL = ("pip", "install", "--quiet", "--no-config", "--offline", "--no-index", "--no-deps")
_ANSWER = 60.0  # seconds that pip may take to list its settings, on a busy machine
_ANOTHER_UNPACKS = 900.0  # seconds to wait for another run's pip: some 100 MB over a slow line


@dataclass(frozen=True)
class GitFetch(Step):
    """Fetch one commit by its hash into a repository that the tool owns.

    Attributes:
        repository: a folder of the tool's own; initialised if it does not exist.
        urls: remotes in the order in which they are tried.
        commit: 40 hex digits, or a ref where a branch was asked for.
        blobless: leave file contents to be fetched on checkout (`--filter=blob:none`).
    """

    noun: ClassVar[str] = "fetched commit"

    repository: Path
    urls: tuple[str, ...]
    commit: str
    blobless: bool = True

    def fetch_argv(self, url: str) -> tuple[str, ...]:
        """Return the command that fetches from one remote, whose URL has no secrets (`GitRemote`)."""
        blobs = ("--filter=blob:none",) if self.blobless else ()
        # By hash, not by branch: a pin may have left the branch by now, and one commit without its history
        # is a fraction of a clone of LLVM.
        return ("git", "-C", str(self.repository), "fetch", "--depth=1", *blobs, "--", url, self.commit)

    def shell(self) -> list[str]:
        tries = " || ".join(map(self._try, map(GitRemote.of, self.urls)))
        return [shlex.join(("git", "init", "--quiet", str(self.repository))), tries]

    @property
    def installs(self) -> bool:
        return True

    def act(self, tools: StepTools) -> None:
        folder, quiet = self.repository.parent, {"GIT_TERMINAL_PROMPT": "0"}
        folder.mkdir(parents=True, exist_ok=True)
        # `init` does nothing in a repository that exists, so an interrupted fetch needs no case of its own.
        tools.run(self, ("git", "init", "--quiet", str(self.repository)), folder, quiet)
        failures: list[str] = []
        for remote in map(GitRemote.of, self.urls):
            code, lines = tools.stream(self.fetch_argv(remote.url), folder, quiet | dict(remote.env))
            if code == 0:
                # With its login: git writes the URL that it really used to FETCH_HEAD.
                remote.tidy(self.repository)
                return
            failures.append(f"{remote.url}: {_git_error(lines) or f'exit code {code}'}")
        raise StepError(
            f"no remote provides commit {self.commit}",
            where=self.repository,
            why="\n".join(failures),
            hints=[
                "check the network; behind a proxy set https_proxy",
                "or use existing sources: --source PATH for Triton, --llvm-source PATH_OR_URL for LLVM",
                "for LLVM, an installed one may do: invoke setup-mlir --provider system",
            ],
        )

    def _try(self, remote: GitRemote) -> str:
        change = [f"{name}={value}" for name, value in remote.env]
        return shlex.join((*(("env", *change) if change else ()), *self.fetch_argv(remote.url)))


def _git_error(lines: tuple[str, ...]) -> str:
    """Return git's own error in its output; advice may follow the error."""
    errors = [line for line in lines if line.startswith(("fatal: ", "error: "))]
    return (errors or lines or ("",))[-1]


@dataclass(frozen=True)
class GitRemote:
    """A remote.

    Attributes:
        url: without its secrets: for command lines, and what git may write down.
        env: change of the environment by which git takes the whole URL where it reads that one.
    """

    url: str
    env: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, url: str) -> GitRemote:
        """Remove the secrets from a URL."""
        bare = _bare(url)
        if bare == url:
            return cls(url)
        change = {
            "GIT_CONFIG_COUNT": "1",
            # `insteadOf` replaces the harmless URL where git reads it, so the whole one is in no command
            # line, which `ps` shows to every user, and in no `.git/config`.
            "GIT_CONFIG_KEY_0": f"url.{url}.insteadOf",
            "GIT_CONFIG_VALUE_0": bare,
        }
        return cls(bare, tuple(change.items()))

    def tidy(self, repository: Path) -> None:
        """Remove the secrets from FETCH_HEAD too, where git writes the whole query."""
        head = repository / ".git" / "FETCH_HEAD"
        if self.env and head.is_file():
            head.write_text(redact.hidden(head.read_text(encoding="utf-8")), encoding="utf-8")


def _bare(url: str) -> str:
    scheme = url.partition("://")[0]
    if scheme not in _WEB:
        return url
    parts = urlsplit(url)
    _, at, host = parts.netloc.rpartition("@")
    kept = "&".join(
        word for word in parts.query.split("&") if word and redact.hidden(f"?{word}") == f"?{word}"
    )
    if not at and kept == parts.query:
        return url
    return urlunsplit((parts.scheme, host, parts.path, kept, parts.fragment))


@dataclass(frozen=True)
class Download(Step):
    """Download a file, resuming a partial one, and verify the file before it gets its name.

    Attributes:
        url: http(s) or file URL.
        sha256: 64 hex digits.
        dest: the finished file; `DEST.partial` while it is incomplete or unverified.
    """

    noun: ClassVar[str] = "download"

    url: str
    sha256: str
    dest: Path

    def shell(self) -> list[str]:
        partial = quote(f"{self.dest}.partial")
        return [
            make_parent(self.dest),
            f"curl --fail --location --continue-at - --output {partial} {shlex.quote(self.url)}",
            f"echo {shlex.quote(f'{self.sha256}  {self.dest}.partial')} | sha256sum --check",
            f"mv {partial} {quote(self.dest)}",
        ]

    @property
    def installs(self) -> bool:
        return True

    def act(self, tools: StepTools) -> None:
        download.fetch(self.url, self.dest, sha256=self.sha256, progress=tools.transfer(self.title))

    @property
    def title(self) -> str:
        return f"download {self.url.rsplit('/', 1)[-1]}"

    @property
    def goes_on(self) -> bool:
        return True


@dataclass(frozen=True)
class VerifyChecksum(Step):
    """Verify a file's checksum, 64 hex digits."""

    path: Path
    sha256: str

    def shell(self) -> list[str]:
        return [f"echo {shlex.quote(f'{self.sha256}  {self.path}')} | sha256sum --check"]

    def act(self, tools: StepTools) -> None:
        download.verify(self.path, self.sha256, tools.transfer(self.title))

    @property
    def title(self) -> str:
        return f"verify {self.path.name}"


@dataclass(frozen=True)
class Extract(Step):
    """Extract a tar archive into a folder that appears only when it is complete.

    Attributes:
        archive: `.tar`, `.tar.gz`, `.tar.xz` ...
        dest: must not exist before.
        root: the marked folder that `dest` lies in, so that an older `DEST.partial` may go.
        only: entries below the archive's first component to keep (all, if empty).
        strip: leading path components to drop.
        sha256: verified first, if given.
    """

    noun: ClassVar[str] = "unpacked archive"

    archive: Path
    dest: Path
    root: Path
    only: tuple[str, ...] = ()
    strip: int = 1
    sha256: str | None = None

    def shell(self) -> list[str]:
        partial = f"{self.dest}.partial"
        # `*` must not match a slash, or `*/lib` would also match `llvm/tools/x/lib`.
        globs = " ".join(shlex.quote("*/" * self.strip + name) for name in self.only)
        lines = [f"rm -rf -- {quote(partial)}", f"mkdir -p {quote(partial)}"]
        if self.sha256:
            lines = VerifyChecksum(self.archive, self.sha256, phase=self.phase).shell() + lines
        # As root, tar would otherwise give the files to the user number that packed them.
        options = f"--no-same-owner --strip-components={self.strip} -C {quote(partial)}"
        wildcards = f" --wildcards --no-wildcards-match-slash {globs}" if globs else ""
        lines.append(f"tar -xf {quote(self.archive)} {options}{wildcards}")
        lines.append(f"mv {quote(partial)} {quote(self.dest)}")
        return lines

    def act(self, tools: StepTools) -> None:
        if self.sha256:
            VerifyChecksum(self.archive, self.sha256, phase=self.phase).act(tools)
        files.remove_owned(self.dest.with_name(f"{self.dest.name}.partial"), self.root)
        self.dest.parent.mkdir(parents=True, exist_ok=True)
        progress = tools.transfer(self.title)
        archive.extract(self.archive, self.dest, only=self.only, strip=self.strip, progress=progress)

    @property
    def title(self) -> str:
        return f"extract {self.archive.name}"


@dataclass(frozen=True)
class UnpackPackage(Step):
    """Unpack a package of the registry into a folder that environments share; pip checks its checksum.

    The folder is made once, under a lock, and appears only when it is complete. One that exists is kept:
    another run may be using it.

    Attributes:
        pip: the command line of `pip install`, up to its target.
        requirement: the package, with its exact version.
        dest: the folder.
        root: the marked folder that `dest` lies in, so that an older `DEST.partial` may go.
        verify: a program of the package and its arguments, which must succeed before `dest` appears.
    """

    pip: tuple[str, ...]
    requirement: str
    dest: Path
    root: Path
    verify: tuple[str, ...] = ()

    @property
    def partial(self) -> Path:
        """The folder while it is incomplete."""
        return self.dest.with_name(f"{self.dest.name}.partial")

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that fill `partial`, and the one that proves that it works."""
        pip = (*self.pip, "--target", str(self.partial), self.requirement)
        return (pip, (str(self.partial / self.verify[0]), *self.verify[1:])) if self.verify else (pip,)

    def shell(self) -> list[str]:
        folder, dest, partial = (quote(path) for path in (self.dest.parent, self.dest, self.partial))
        return [
            f"mkdir -p {folder}",
            f"if [ ! -d {dest} ]; then",
            f"  rm -rf -- {partial}",
            *(f"  (cd {folder} && {shlex.join(argv)})" for argv in self.commands),
            f"  mv {partial} {dest}",
            "fi",
        ]

    @property
    def installs(self) -> bool:
        return not self.dest.is_dir()

    def act(self, tools: StepTools) -> None:
        self.dest.parent.mkdir(parents=True, exist_ok=True)
        with locks.hold(
            self.dest.with_name(f".{self.dest.name}.lock"),
            purpose=f"pip install {self.requirement}",
            busy=f"unpacking {self.requirement}",
            hints=["wait for it to end, or stop it"],
            patience=_ANOTHER_UNPACKS,
        ):
            # Another environment may have unpacked it while this one waited for the lock. A package is
            # never replaced: a build that is running may be reading it.
            if self.dest.is_dir():
                return
            files.remove_owned(self.partial, self.root)
            for argv in self.commands:
                tools.run(self, argv, self.dest.parent, {})
            self.partial.replace(self.dest)

    @property
    def title(self) -> str:
        return f"unpack {self.requirement}"


@dataclass(frozen=True)
class InstallWheel(Step):
    """Install a package of one large wheel, which pip finds and uv unpacks, in a third of pip's CPU seconds.

    The environment gets files of its own, no links into a cache: those of Triton are edited in place.

    Attributes:
        pip: the command line of a pip that is not the environment's own.
        alike: whether that pip chooses a wheel as one in the environment does.
        uv: the program.
        python: the environment's interpreter.
        site: its site-packages.
        requirement: the package, and nothing else.
        folder: has the wheel until it is unpacked; on the disk of the environment.
        root: the marked folder that `folder` lies in.
    """

    pip: tuple[str, ...]
    alike: bool
    uv: Path
    python: Path
    site: Path
    requirement: str
    folder: Path
    root: Path

    @property
    def commands(self) -> tuple[tuple[str, ...], ...]:
        """The commands that install the package alone, and the one that adds what it requires."""
        quiet = ("--quiet", "--disable-pip-version-check")
        pip = (*self.pip, "--python", str(self.python))
        # `--python` starts pip once more, in that interpreter.
        chooses = self.pip if self.alike else pip
        linked = ("--link-mode", "hardlink", "--cache-dir", str(self.folder / "uv"))
        target = ("--python", str(self.python), "--find-links", str(self.folder), self.requirement)
        return (
            # By pip: which index, which checksums and constraints are settings that uv does not read.
            (*chooses, "download", *quiet, "--no-deps", "--dest", str(self.folder), self.requirement),
            # uv links what it has unpacked: once its cache is gone, each file has this one name. If an
            # earlier run was killed, half a package may be there, which must not pass for an installed one.
            # Nothing is compiled: the first import does that for what it needs, a third of the modules.
            (str(self.uv), *UV_INSTALL, "--reinstall", *linked, *target),
            (*pip, "install", *quiet, self.requirement),
        )

    def shell(self) -> list[str]:
        folder = quote(self.folder)
        lines = [shlex.join(argv) for argv in self.commands]
        return [f"rm -rf -- {folder}", *lines, f"rm -rf -- {folder}"]

    @property
    def installs(self) -> bool:
        return True

    def act(self, tools: StepTools) -> None:
        here = self.folder.parent
        download, unpack, complete = self.commands
        # A link mode or a target of the user's would put the files elsewhere.
        no_settings = dict.fromkeys(name for name in tools.environ if name.startswith("UV_"))
        # A setting like `--python`, and one that is about installing outside of a virtual environment.
        here_too = {"PIP_PYTHON": None, "PIP_REQUIRE_VIRTUALENV": "0"}
        files.remove_owned(self.folder, self.root)
        with _ASKING:
            has_own_settings = _has_own_settings(self.pip)
        if has_own_settings or (self.python.parents[1] / "pip.conf").exists():
            tools.run(self, complete, here, {})
            return
        try:
            tools.run(self, download, here, here_too)
            wheel = next(self.folder.glob("*.whl"), None)
            if wheel:
                tools.run(self, unpack, here, no_settings)
            # What is no wheel is built, which is pip's business as well.
            if wheel is None or _requires_others(wheel, self.site.parent.name.removeprefix("python")):
                tools.run(self, complete, here, {})
        finally:
            files.remove_owned(self.folder, self.root)

    @property
    def title(self) -> str:
        return f"install {self.requirement}"


_ASKING = threading.Lock()  # several environments are made at once, and one of them asks


@functools.cache
def _has_own_settings(pip: tuple[str, ...]) -> bool:
    """Report whether settings of pip are for `pip install` or `pip download` alone, or name a Python."""
    # An index in such a section is often a company's own, and another one must not be asked instead.
    answer = process.query((*pip, "config", "list"), timeout=_ANSWER)
    own = re.compile(r"^(?:install\.|download\.|global\.python=)", re.MULTILINE)
    return answer is None or answer.code != 0 or own.search(answer.out) is not None


def _requires_others(wheel: Path, minor: str) -> bool:
    """Report whether a wheel requires other packages in a Python of this release line, or may do."""
    with zipfile.ZipFile(wheel) as archived:
        name = next(name for name in archived.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = archived.read(name).decode(errors="replace")
    environment = {"python_version": minor, "extra": ""}
    for line in re.findall(r"^Requires-Dist:(.+)$", metadata, re.MULTILINE | re.IGNORECASE):
        try:
            marker = Requirement(line.strip()).marker
        except InvalidRequirement:
            return True
        if marker is None or marker.evaluate(environment):
            return True
    return False


@dataclass(frozen=True)
class Upload(Step):
    """Upload a file to an object store."""

    source: Path
    url: str

    def shell(self) -> list[str]:
        return [f"# {shlex.quote(str(self.source))} goes to {redact.hidden(self.url)}"]

    def act(self, tools: StepTools) -> None:
        with open_object_store(self.url) as (system, path):
            system.put_file(str(self.source), path, callback=_progress_callback(tools, self.title))

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

    @property
    def installs(self) -> bool:
        return True

    def act(self, tools: StepTools) -> None:
        def transfer(partial: Path) -> None:
            with open_object_store(self.url) as (system, path):
                # The size is known before the first byte, as for http.
                download.check_room(redact.hidden(self.url), partial, 0, system.size(path))
                try:
                    system.get_file(path, str(partial), callback=_progress_callback(tools, self.title))
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


def check_object_store(url: str) -> None:
    """Check that a client for a URL is installed, before any transfer. Contacts no server.

    Raises:
        SmithError: no client is installed.
    """
    with open_object_store(url):
        pass


def object_text(url: str) -> str:
    """Return the content of a small text file in an object store.

    Raises:
        DownloadError: the file cannot be read.
    """
    with open_object_store(url) as (system, path):
        content: bytes = system.cat_file(path, 0, _SMALL_TEXT)
        return content.decode("utf-8", errors="replace")


@contextmanager
def open_object_store(url: str) -> Iterator[tuple[Any, str]]:
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
            hints=[f"for s3: {command_line.installing('s3')}"],
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


def _progress_callback(tools: StepTools, title: str) -> Any:
    from fsspec.callbacks import Callback  # noqa: PLC0415

    class Progress(Callback):  # type: ignore[misc]
        def call(self, *_: Any, **__: Any) -> None:
            tools.update(self.value, self.size, title)

    return Progress()
