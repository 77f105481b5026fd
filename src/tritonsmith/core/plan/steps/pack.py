"""Pack trees into archives that can be unpacked anywhere, and unpack them.

An archive is a tar file, compressed by zstd:

```
tritonsmith-llvm.json   the manifest, and which files may contain the tree's path
tree/...                the tree; a placeholder replaces the tree's path in its files
SHA256SUMS              the checksum of each file in `tree/`
```

`ARCHIVE.sha256` beside it is written last and read first: an archive without it is not complete.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import tarfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, cast

from tritonsmith.core import configs, untrusted
from tritonsmith.core.errors import DownloadError, StepError
from tritonsmith.core.plan import archive, download, files
from tritonsmith.core.plan.archive import Tarball, TarMember
from tritonsmith.core.plan.compression import DamagedError, TooMuchError
from tritonsmith.core.plan.confined_tree import FreshTree
from tritonsmith.core.plan.steps.base import Step, StepTools
from tritonsmith.core.plan.steps.fetch import VerifyChecksum

SCHEMA = 1
HEAD, TREE, SUMS = "tritonsmith-llvm.json", "tree", "SHA256SUMS"
# In an unpacked tree, for `store --verify`: the archive's own sums are of texts with placeholders.
CHECKSUMS = "tritonsmith-checksums.json"
ARRIVED = ".tritonsmith-import"  # in an unpacked tree: the archive's checksum
_CHUNK = 1 << 20  # bytes
_PATTERN = 256  # characters of a pattern of names: none is longer
PLACEHOLDER = b"@TRITONSMITH_PREFIX@"  # stands for the tree's path in an archive's texts
_UNQUOTABLE = '"\\$;\n'  # CMake takes these for something else in a quoted string


@dataclass(frozen=True)
class Item:
    """A file or a link to pack, by its path in the tree; the source of a link is what it says."""

    name: str
    source: str
    link: bool = False


@dataclass(frozen=True)
class Pack(Step):
    """Pack a tree; thin archives become regular ones, and placeholders replace paths in texts.

    Attributes:
        dest: the archive; `DEST.partial` until it is complete, `DEST.sha256` beside it comes last.
        head: text of the first entry.
        items: the files and links to pack.
        places: folders that texts may name, and what stands for each, below the placeholder.
        texts: patterns of names of texts.
        mtime: time stamp of everything in it, so that the same tree gives the same archive.
        level: of zstd.
    """

    dest: Path
    head: str
    items: tuple[Item, ...]
    places: tuple[tuple[str, str], ...]
    texts: tuple[str, ...]
    mtime: int
    level: int

    def shell(self) -> list[str]:
        # A shell would leave thin archives, and the paths in texts, as they are.
        tops = dict.fromkeys(name.partition("/")[0] for name in (item.name for item in self.items))
        tree, dest = shlex.quote(self.places[0][0]), shlex.quote(str(self.dest))
        return [
            f"# {len(self.items)} files; thin archives become regular ones, paths in texts a placeholder",
            f"tar -C {tree} -cf - {shlex.join(tops)} | zstd -{self.level} -o {dest}",
            f"sha256sum {dest} > {dest}.sha256",
        ]

    def act(self, tools: StepTools) -> None:
        self.dest.parent.mkdir(parents=True, exist_ok=True)
        sidecar, partial = checksum_file(self.dest), self.dest.with_name(f"{self.dest.name}.partial")
        # The checksum goes first and comes last: a killed run leaves an archive without
        # one, which no import accepts.
        sidecar.unlink(missing_ok=True)
        with _explained(self):
            total = sum(_size(item) for item in self.items)
        done = 0

        def count(number: int, name: str) -> None:
            nonlocal done
            done += number
            tools.update(done, max(total, done), name)

        try:
            sha256 = _write(self, partial, count)
        except BaseException:  # half an archive may be what fills the disk
            with suppress(OSError):
                partial.unlink()
            raise
        partial.replace(self.dest)
        files.write_atomically(sidecar, f"{sha256}  {self.dest.name}\n")

    @property
    def title(self) -> str:
        return f"pack {self.dest.name}"


@dataclass(frozen=True)
class Unpack(Step):
    """Unpack an archive into a folder that appears only when all files are verified and in place.

    Attributes:
        archive: the archive.
        sha256: of the archive; verified before anything else.
        dest: the tree; must not exist before.
        scratch: where it is unpacked; what an interrupted run left there goes first.
        owner: the marked folder that `scratch` lies in.
    """

    archive: Path
    sha256: str
    dest: Path
    scratch: Path
    owner: Path

    def shell(self) -> list[str]:
        archive, scratch, dest = (shlex.quote(str(path)) for path in (self.archive, self.scratch, self.dest))
        mark = PLACEHOLDER.decode()
        return [
            *VerifyChecksum(self.archive, self.sha256, phase=self.phase).shell(),
            f"rm -rf -- {scratch} && mkdir -p {scratch}",
            f"zstd -dc {archive} | tar --no-same-owner -xf - -C {scratch}",
            f"(cd {scratch}/{TREE} && sha256sum --check --quiet ../{SUMS})",
            f"# in texts {mark} becomes {dest}",
            f"mv {scratch}/{TREE} {dest}",
        ]

    def act(self, tools: StepTools) -> None:
        check_prefix(self.dest)
        VerifyChecksum(self.archive, self.sha256, phase=self.phase).act(tools)
        # What an interrupted import left.
        files.remove_owned(self.scratch, self.owner)
        with (
            archive.open_tar(self.archive, tools.transfer(self.title)) as tarball,
            FreshTree(self.scratch) as tree,
        ):
            head = _fill(tree, tarball)
            tree.finish()
            # The prefix is put into the texts while the tree is still in the scratch folder: it gets
            # its name when it is right.
            sums = tree.sums | fill_placeholders(self.scratch, self.dest, head["texts"])
            for name, text in (
                (CHECKSUMS, json.dumps({"schema": SCHEMA, "sha256": sums})),
                (ARRIVED, self.sha256),
            ):
                with (self.scratch / name).open("x", encoding="utf-8") as file:
                    file.write(text)
            self.scratch.rename(self.dest)

    @property
    def title(self) -> str:
        return f"unpack {self.archive.name}"


def _fill(tree: FreshTree, tarball: Tarball) -> dict[str, Any]:
    """Extract all entries into a tree, verify their checksums, and return the head of the archive."""
    head: dict[str, Any] = {}
    promised: dict[str, str] | None = None
    for member in tarball:
        first, *inner = member.parts or ("",)
        if not head:
            head = _head(member, tarball)
        # An archive could bring these two files, and so vouch for itself.
        elif first == TREE and inner and inner[0] not in (CHECKSUMS, ARRIVED):
            archive.add_member(tree, member, tarball, 1)
        elif member.parts == (SUMS,) and promised is None:
            promised = _promised(_small(member, tarball, "sums"))
        elif member.parts != (TREE,) or member.kind != "folder":
            raise DamagedError(f"entry {member.name!r} does not belong in an exported archive")
    _compare(promised or {}, tree.sums)
    return head


@dataclass(frozen=True)
class WriteChecksum(Step):
    """Write a file's SHA-256 beside it, as `sha256sum` does."""

    path: Path

    def shell(self) -> list[str]:
        folder, name = shlex.quote(str(self.path.parent)), shlex.quote(self.path.name)
        return [f"(cd {folder} && sha256sum {name} > {shlex.quote(checksum_file(self.path).name)})"]

    def act(self, tools: StepTools) -> None:
        tools.update(0, None, self.title)
        with self.path.open("rb") as file:
            checksum = hashlib.file_digest(file, "sha256").hexdigest()
        files.write_atomically(checksum_file(self.path), f"{checksum}  {self.path.name}\n")

    @property
    def title(self) -> str:
        return f"checksum of {self.path.name}"


def checksum_file(path: Path) -> Path:
    """Return the file with an archive's checksum."""
    return path.with_name(f"{path.name}.sha256")


def read_head(path: Path) -> dict[str, Any]:
    """Return the first entry of an archive, which describes the archive; the rest is not read.

    Raises:
        DownloadError: not an archive of a store.
    """
    try:
        with archive.open_tar(path) as tarball:
            for member in tarball:
                return _head(member, tarball)
            raise DamagedError("the archive is empty")
    except OSError as error:
        raise DownloadError("cannot read this archive", where=path, why=error.strerror) from error
    except DownloadError as error:
        raise DownloadError(
            "not an archive of a store",
            where=path,
            why=error.why,
            hints=["create one with `invoke store --export NAME DEST`"],
        ) from error


def _small(member: TarMember, tarball: Tarball, limit: str) -> bytes:
    """Return the content of an entry, read into memory."""
    allowed: int = configs.load("archives")["limits"][limit]
    if member.kind != "file" or member.size > allowed:
        raise TooMuchError(f"{member.name} is not a file of at most {allowed:,} bytes")
    return b"".join(tarball.content())


def _head(member: TarMember, tarball: Tarball) -> dict[str, Any]:
    if member.parts != (HEAD,):
        raise DamagedError(f"the archive does not begin with {HEAD}")
    head = untrusted.json_of(_small(member, tarball, "head"))
    if not isinstance(head, dict) or head.get("schema") != SCHEMA:
        raise DamagedError(
            f"the archive does not have schema {SCHEMA}: another version of tritonsmith wrote it"
        )
    texts = head.get("texts")
    patterns = isinstance(texts, list) and all(
        isinstance(pattern, str) and len(pattern) < _PATTERN for pattern in texts
    )
    if not (isinstance(head.get("manifest"), dict) and patterns):
        raise DamagedError(f"{HEAD} is damaged")
    return head


def _size(item: Item) -> int:
    if item.link:
        return 0
    path = Path(item.source)
    if item.name.endswith(".a") and archive.ar_kind(path) == "thin":
        return archive.fat_size(archive.read_ar(path))
    return path.stat().st_size


class _Hashed(io.RawIOBase):
    """A file that computes the checksum of what is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.sha256 = hashlib.sha256()

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self.sha256.update(data)
        return self._file.write(data)


def _write(step: Pack, partial: Path, count: Callable[[int, str], None]) -> str:
    """Write the archive, and return its checksum."""
    import zstandard  # noqa: PLC0415 - for this step alone

    with partial.open("wb") as file, _explained(step):
        hashed = _Hashed(file)
        # All cores, and a checksum of zstd's in each frame, so that damage is found where
        # it is and not at the end.
        packer = zstandard.ZstdCompressor(level=step.level, threads=-1, write_checksum=True)
        with (
            packer.stream_writer(cast("IO[bytes]", hashed), closefd=False) as packed,
            # `w|` is a stream that is never rewound. pax has names of any length and any bytes.
            tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT, bufsize=_CHUNK) as tar,
        ):
            tar.copybufsize = _CHUNK  # type: ignore[attr-defined] # its own is 16 KiB
            _add(tar, HEAD, step.head.encode(), step.mtime)
            sums = list(_add_items(tar, step, count))
            _add(tar, SUMS, "".join(sums).encode("utf-8", "surrogateescape"), step.mtime)
        file.flush()
        os.fsync(file.fileno())
    return hashed.sha256.hexdigest()


@contextmanager
def _explained(step: Pack) -> Iterator[None]:
    try:
        yield
    except (archive.BadArchiveError, tarfile.TarError) as error:
        raise StepError(
            "cannot pack this tree",
            where=step.dest,
            why=str(error),
            hints=["a build may be running in the tree, or was stopped: check with `invoke store --verify`"],
        ) from error


def _add_items(tar: tarfile.TarFile, step: Pack, count: Callable[[int, str], None]) -> Iterator[str]:
    for item in step.items:
        name = f"{TREE}/{item.name}"
        if item.link:
            about = _about(name, 0, step.mtime)
            about.type, about.linkname = tarfile.SYMTYPE, item.source
            tar.addfile(about)
            continue
        path = Path(item.source)
        about = _about(name, _size(item), step.mtime)
        # Two modes only, so that the umask of the builder is not a part of the
        # archive, and no setuid bit is.
        about.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
        if is_text(path, step.texts):
            text = with_placeholders(path.read_bytes(), step.places)
            about.size, pieces = len(text), iter([text])
        elif item.name.endswith(".a") and archive.ar_kind(path) == "thin":
            pieces = archive.fatten(archive.read_ar(path))
        else:
            pieces = _pieces(path)
        # `tarfile` copies from a reader: so the checksum is computed while the file is read the only time.
        reader = _Pieces(pieces, lambda number, name=item.name: count(number, name))  # type: ignore[misc]
        tar.addfile(about, reader)
        yield f"{reader.sha256.hexdigest()}  {item.name}\n"


def _about(name: str, size: int, mtime: int) -> tarfile.TarInfo:
    about = tarfile.TarInfo(name)
    about.size, about.mtime = size, mtime
    return about


def _add(tar: tarfile.TarFile, name: str, content: bytes, mtime: int) -> None:
    tar.addfile(_about(name, len(content), mtime), io.BytesIO(content))


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            yield chunk


class _Pieces(io.RawIOBase):
    """Pieces as a readable file, with a checksum at the end."""

    def __init__(self, pieces: Iterator[bytes], count: Callable[[int], None]) -> None:
        self._pieces, self._rest, self._count = pieces, b"", count
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        while size < 0 or len(self._rest) < size:
            piece = next(self._pieces, None)
            if piece is None:
                break
            self._rest += piece
        count = len(self._rest) if size < 0 else size
        data, self._rest = self._rest[:count], self._rest[count:]
        self.sha256.update(data)
        self._count(len(data))
        return data


def _promised(text: bytes) -> dict[str, str]:
    """Return the checksum of each file, from `SHA256SUMS`."""
    checksums: dict[str, str] = {}
    for line in os.fsdecode(text).split("\n")[:-1]:
        sha256, blanks, name = line.partition("  ")
        if not (blanks and name) or name in checksums:
            raise DamagedError(f"{SUMS} has an invalid or duplicate line: {line[:80]!r}")
        checksums[name] = sha256
    return checksums


def _compare(promised: dict[str, str], unpacked: dict[str, str]) -> None:
    """Check that each file has the checksum listed in the archive, and that none is missing."""
    wrong = [f"{name}: not listed" for name in sorted(unpacked.keys() - promised.keys())]
    wrong += [f"{name}: missing" for name in sorted(promised.keys() - unpacked.keys())]
    both = sorted(unpacked.keys() & promised.keys())
    wrong += [f"{name}: wrong checksum" for name in both if unpacked[name] != promised[name]]
    if wrong:
        raise DamagedError("\n".join(("the content does not match its checksums", *wrong[:8])))


def check_prefix(place: Path) -> None:
    """Check that texts can contain a path.

    Raises:
        StepError: CMake would misread the path.
    """
    if unquotable := next((char for char in _UNQUOTABLE if char in str(place)), None):
        raise StepError(
            f"CMake packages cannot contain a path with {unquotable!r}",
            where=place,
            hints=["choose another store: `store` under [llvm] in the env file, or TRITONSMITH_HOME"],
        )


def is_text(path: Path, patterns: Iterable[str]) -> bool:
    """Return whether a file may contain the tree's path: by its name, or because it is a script."""
    # A larger file is a library or a database, in which a longer path would move everything after it.
    if path.stat().st_size > configs.load("archives")["limits"]["text"]:
        return False
    if any(fnmatchcase(path.name, pattern) for pattern in patterns):
        return True
    with path.open("rb") as file:
        return file.read(2) == b"#!"


def with_placeholders(text: bytes, places: Iterable[tuple[str, str]]) -> bytes:
    """Return a text, in any encoding, with a placeholder for each path that it contains.

    `places` are folders, and what stands for each below the placeholder; of nested ones the inner wins.
    """
    for place, name in sorted(places, key=lambda pair: len(pair[0]), reverse=True):
        # The path alone: not the beginning of another's name (`/opt/llvm` in `/opt/llvm-19`), nor the end
        # of another's path, but after -I and -L.
        whole = rb"(?:(?<![\w.+~/-])|(?<=-[ILF]))" + re.escape(os.fsencode(place)) + rb"(?![\w.+~-])"
        fresh = PLACEHOLDER + (b"/" + os.fsencode(name) if name else b"")
        text = re.sub(whole, fresh.replace(b"\\", rb"\\"), text)
    return text


def fill_placeholders(tree: Path, dest: Path, texts: Iterable[str]) -> dict[str, str]:
    """Replace the placeholder with `dest`, where an unpacked tree will lie; return the changed checksums."""
    patterns = tuple(texts)
    changed = {}
    for path in tree.rglob("*"):
        if not path.is_symlink() and path.is_file() and is_text(path, patterns):
            text = path.read_bytes()
            if PLACEHOLDER in text:
                path.write_bytes(text.replace(PLACEHOLDER, os.fsencode(dest)))
                changed[str(path.relative_to(tree))] = download.sha256_of(path)
    return changed
