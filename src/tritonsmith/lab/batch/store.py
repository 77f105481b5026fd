"""The database of kept results: `kernels/results.db` of the workspace, one file of SQLite.

A result is what one Triton made of one kernel for one target: its manifest, its metrics and its files. Files
are kept by content and compressed, so the kernels that a change of the compiler leaves alone cost a row.

    result   triton, key, target -> manifest, metrics   what was compiled, by what
    file     triton, key, target, path -> sha256        the files of a result
    content  sha256 -> data                             each content once
    imports  sha256, kernel -> words                    what a source file imports, by its content
    answer   question -> text                           what was worked out from results: `kept_files.answer`

`triton` is a folder's name (`releases/3.6.0`), and `key` a digest of everything that was asked for but the
target. Texts and contents are compressed by Zstandard. Readers never wait, and writers for each other (WAL).
"""

from __future__ import annotations

import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import TypeVar

import zstandard

from tritonsmith.core import untrusted
from tritonsmith.core.errors import FactError, StepError
from tritonsmith.core.plan import files
from tritonsmith.core.ui import console

_VERSION = 1  # of the tables
_OURS = 0x54534D52  # `application_id` of the file: nobody else's database is taken for ours
_PATIENCE = 60.0  # seconds to wait for another writer, whose transactions take milliseconds
_MOMENT = 0.05  # seconds between two tries
_DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
_TABLES = (
    """CREATE TABLE result (
        triton TEXT, key TEXT, target TEXT, manifest BLOB NOT NULL, metrics BLOB,
        PRIMARY KEY (triton, key, target)) WITHOUT ROWID""",
    """CREATE TABLE file (
        triton TEXT, key TEXT, target TEXT, path TEXT, sha256 TEXT NOT NULL,
        PRIMARY KEY (triton, key, target, path)) WITHOUT ROWID""",
    "CREATE INDEX file_content ON file (sha256)",
    "CREATE TABLE content (sha256 TEXT PRIMARY KEY, data BLOB NOT NULL)",
    """CREATE TABLE imports (
        sha256 TEXT, kernel TEXT, words TEXT NOT NULL, PRIMARY KEY (sha256, kernel)) WITHOUT ROWID""",
)
# Made on demand: a database of an earlier version of this tool has none, and that version reads ours.
_ANSWERS = "CREATE TABLE IF NOT EXISTS answer (question TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID"
# Removes all results. Not the file: a program that has it open would go on with one that nobody else sees.
CLEAR = (
    "DELETE FROM result; DELETE FROM file; DELETE FROM content; DELETE FROM imports; DELETE FROM answer; "
    "VACUUM;"
)
# Removes the results of some Tritons, by the beginning of their names.
REMOVE = (
    "DELETE FROM result WHERE triton GLOB '{0}/*'; DELETE FROM file WHERE triton GLOB '{0}/*'; "
    "DELETE FROM content WHERE sha256 NOT IN (SELECT sha256 FROM file); DELETE FROM imports; "
    "DROP TABLE IF EXISTS answer;"
)

T = TypeVar("T")
Rows = list[tuple[str, bytes | None]]  # targets with texts as they are kept


@dataclass(frozen=True)
class TritonUsage:
    """The results of one Triton.

    Attributes:
        triton: `releases/3.6.0`.
        kernels: the number of kernels.
        bytes: of its files as they are kept; those that it shares with another Triton count for both.
    """

    triton: str
    kernels: int
    bytes: int


@dataclass(frozen=True)
class PackedFile:
    """A file of a result as it is kept: see `pack`.

    Attributes:
        path: its path, relative to the folder of the result.
        sha256: the digest of its content.
        data: the content, compressed; None if it is not there any more.
    """

    path: str
    sha256: str
    data: bytes | None

    def content(self, of: str) -> bytes:
        """Return the content.

        Args:
            of: the result, for the error.

        Raises:
            FactError: it is damaged.
        """
        content = b""
        with suppress(zstandard.ZstdError, ValueError):
            content = _unpacked(self.data) if self.data is not None else b""
        if sha256(content).hexdigest() != self.sha256:
            what = "a file of a kept result is damaged"
            hints = ["invoke clear-cache --rehearsed removes all kept results"]
            raise FactError(what, why=f"{self.path} of {of}", hints=hints)
        return content


class ResultStore:
    """The results of one workspace; for the thread that made it.

    A damaged file is renamed, with a warning, and begun anew: all results can be made again.

    Args:
        path: the database; it is created, and so is its folder.

    Raises:
        FactError: it was written by a newer version of this tool.
        StepError: it cannot be opened or created.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._alone = threading.RLock()
        self._open()

    def find(self, triton: str, key: str, targets: Sequence[str]) -> dict[str, str]:
        """Return the texts of the manifests of a kernel, by target; of results that are kept."""
        return self.unpacked(self.find_packed(triton, key, targets))

    def find_packed(self, triton: str, key: str, targets: Sequence[str]) -> Rows:
        """Return what `find` returns, as it is kept: two that are equal are the same result."""
        return self._rows("manifest", triton, key, targets)

    def metrics(self, triton: str, key: str, targets: Sequence[str]) -> dict[str, str]:
        """Return the texts that `keep_metrics` got, by target; of results that are measured."""
        return self.unpacked(self._rows("metrics", triton, key, targets))

    def _rows(self, column: str, triton: str, key: str, targets: Sequence[str]) -> Rows:
        text = f"SELECT target, {column} FROM result WHERE triton=? AND key=? AND target IN "  # noqa: S608
        text += f"({','.join('?' * len(targets))})"
        return self._do(lambda: self._base.execute(text, (triton, key, *targets)).fetchall()) or []

    @staticmethod
    def unpacked(rows: Rows) -> dict[str, str]:
        """Return the texts of rows, by target; one that is damaged is left out, and so made again."""
        texts = {}
        for target, raw in rows:
            with suppress(zstandard.ZstdError, ValueError):
                if raw is not None:
                    texts[target] = _unpacked(raw).decode()
        return texts

    def keep(
        self,
        triton: str,
        key: str,
        target: str,
        manifest: str,
        parts: Iterable[PackedFile],
        metrics: str = "",
    ) -> None:
        """Keep a result, in place of an earlier one.

        Args:
            triton: what compiled it.
            key: of what was asked for.
            target: the target.
            manifest: the text of the manifest.
            parts: its files.
            metrics: the text for `metrics`; empty if it was not measured.
        """
        place = (triton, key, target)
        # Compressed before the transaction, as other writers wait for its end.
        row = (*place, _packed(manifest.encode()), _packed(metrics.encode()) if metrics else None)
        rows = [(*place, part.path, part.sha256) for part in parts]
        contents = [(part.sha256, part.data) for part in parts]

        def write() -> None:
            with self._transaction():
                self._base.execute("INSERT OR REPLACE INTO result VALUES (?,?,?,?,?)", row)
                self._base.execute("DELETE FROM file WHERE triton=? AND key=? AND target=?", place)
                self._base.executemany("INSERT INTO file VALUES (?,?,?,?,?)", rows)
                self._base.executemany("INSERT OR IGNORE INTO content VALUES (?,?)", contents)

        self._do(write, again=True)

    def add(
        self, triton: str, key: str, target: str, manifest: str, metrics: str, parts: Mapping[str, bytes]
    ) -> None:
        """Add files to a result that is kept, whose manifest and metrics then name them.

        Args:
            triton: what compiled it.
            key: of what was asked for.
            target: the target.
            manifest: the text of the new manifest.
            metrics: the new text for `metrics`.
            parts: relative path to the content of each file that is new.
        """
        place = (triton, key, target)
        sums = {path: sha256(content).hexdigest() for path, content in parts.items()}
        packed = {sums[path]: _packed(content) for path, content in parts.items()}

        def write() -> None:
            with self._transaction():
                row = (_packed(manifest.encode()), _packed(metrics.encode()), *place)
                text = "UPDATE result SET manifest=?, metrics=? WHERE triton=? AND key=? AND target=?"
                # Cleared meanwhile: files that no result has would stay for ever.
                if not self._base.execute(text, row).rowcount:
                    return
                rows = [(*place, path, digest) for path, digest in sums.items()]
                self._base.executemany("INSERT OR REPLACE INTO file VALUES (?,?,?,?,?)", rows)
                self._base.executemany("INSERT OR IGNORE INTO content VALUES (?,?)", packed.items())

        self._do(write, again=True)

    def keep_metrics(self, triton: str, key: str, target: str, text: str) -> None:
        """Keep the metrics of a result that is kept."""
        row = (_packed(text.encode()), triton, key, target)
        self._do(
            lambda: self._base.execute(
                "UPDATE result SET metrics=? WHERE triton=? AND key=? AND target=?", row
            ),
            again=True,
        )

    def contents(self, triton: str, key: str, target: str) -> Iterator[tuple[str, bytes]]:
        """Yield the relative path and the content of each file of a result.

        Raises:
            FactError: a content is damaged.
        """
        for row in self.packed_files(triton, key, target):
            yield row.path, row.content(f"{triton}/{key}")

    def packed_files(self, triton: str, key: str, target: str) -> list[PackedFile]:
        """Return the files of a result as they are kept."""
        text = "SELECT path, file.sha256, data FROM file LEFT JOIN content USING (sha256) "
        text += "WHERE triton=? AND key=? AND target=?"
        rows = self._do(lambda: self._base.execute(text, (triton, key, target)).fetchall()) or ()
        return [PackedFile(*row) for row in rows]

    def imports(self, digest: str, kernel: str) -> list[tuple[str, int]] | None:
        """Return what a source file of that content imports for a kernel; None if that is not known."""
        text = "SELECT words FROM imports WHERE sha256=? AND kernel=?"
        row = self._do(lambda: self._base.execute(text, (digest, kernel)).fetchone())
        # A line for each, `2 a.b`: JSON would take as long as to read and hash the file.
        lines = (line.partition(" ") for line in row[0].splitlines()) if row else ()
        with suppress(ValueError):  # a stranger's: read again
            return [(words, int(level)) for level, _, words in lines] if row else None
        return None

    def keep_imports(self, digest: str, kernel: str, words: Sequence[tuple[str, int]]) -> None:
        """Keep what a source file of that content imports: dotted names with their levels."""
        row = (digest, kernel, "".join(f"{level} {name}\n" for name, level in words))
        self._do(lambda: self._base.execute("INSERT OR REPLACE INTO imports VALUES (?,?,?)", row), again=True)

    def answer(self, question: str) -> str | None:
        """Return the answer that was kept for a question; None if there is none."""
        text = "SELECT text FROM answer WHERE question=?"
        row = self._do(lambda: self._base.execute(text, (question,)).fetchone())
        return row[0] if row else None

    def keep_answer(self, question: str, answer: str) -> None:
        """Keep the answer to a question."""
        row = (question, answer)
        self._do(lambda: self._base.execute("INSERT OR REPLACE INTO answer VALUES (?,?)", row), again=True)

    def bytes_each(self) -> int:
        """Return the average size of a result for one target, as it is kept; 0 if there is none."""
        text = "SELECT (SELECT coalesce(sum(length(data)), 0) FROM content) / count(*) FROM result"
        rows = self._do(lambda: self._base.execute(text).fetchall()) or [(0,)]
        return rows[0][0] or 0

    def usage(self) -> list[TritonUsage]:
        """Return what each Triton's results are, by name."""
        text = """
            SELECT triton, count(DISTINCT key), (
                SELECT coalesce(sum(length(data)), 0) FROM content WHERE sha256 IN (
                    SELECT sha256 FROM file WHERE file.triton = result.triton))
            FROM result GROUP BY triton ORDER BY triton"""
        return [TritonUsage(*row) for row in self._do(lambda: self._base.execute(text).fetchall()) or ()]

    def merge(self, source: Path) -> tuple[int, int]:
        """Take over the results of another database that are not here; return their number, and of all there.

        Raises:
            FactError: it is no database of this tool, or damaged.
        """
        try:
            with _connected(source, read_only=True) as other:
                if not _check(other, source):
                    raise ValueError("it is empty")  # noqa: TRY301 - one error for all
                # A view instead of a table could go on for ever, and SQLite does not hear ^C meanwhile.
                text = "SELECT sql FROM sqlite_schema WHERE sql NOT NULL AND name <> 'answer'"
                schema = other.execute(text).fetchall()
                if sorted(schema) != sorted((text,) for text in _TABLES):
                    raise ValueError("its tables are others")  # noqa: TRY301 - one error for all
                total = 0
                new = 0
                for place in other.execute("SELECT triton, key, target FROM result").fetchall():
                    total += 1
                    for part in place:
                        untrusted.place_in(part)
                    if not self.find(place[0], place[1], [place[2]]):
                        self._take(other, place)
                        new += 1
        # A column may have a value of any type, whatever its declaration says (sqlite.org/datatype3.html).
        except (sqlite3.Error, zstandard.ZstdError, ValueError, TypeError, AttributeError) as error:
            raise FactError("cannot read these results", where=source, why=str(error)) from error
        return new, total

    def _take(self, other: sqlite3.Connection, place: tuple[str, str, str]) -> None:
        """Copy one result; a stranger's content has to be what its digest says."""
        text = "SELECT manifest, metrics FROM result WHERE triton=? AND key=? AND target=?"
        manifest, metrics = other.execute(text, place).fetchone()
        text = "SELECT path, data, file.sha256 FROM file LEFT JOIN content USING (sha256) "
        text += "WHERE triton=? AND key=? AND target=?"
        parts = {}
        for path, data, digest in other.execute(text, place):
            parts[untrusted.place_in(path)] = content = _unpacked(data or b"")
            if sha256(content).hexdigest() != digest:
                raise ValueError(f"{path} of {'/'.join(place)} is damaged")
        measured = _unpacked(metrics).decode() if metrics else ""
        self.keep(*place, _unpacked(manifest).decode(), pack(parts), measured)

    def close(self) -> None:
        """Close the file."""
        self._base.close()

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        # Not `DEFERRED`: of two that begin by reading, the second to write would fail at once.
        self._base.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            # ^C included: a transaction that is left open would make every other process wait.
            with suppress(sqlite3.Error):
                self._base.execute("ROLLBACK")
            raise
        self._base.execute("COMMIT")

    def _do(self, act: Callable[[], T], *, again: bool = False) -> T | None:
        """Act on the database; if it is damaged, begin a new one.

        Args:
            act: the action.
            again: repeat it then; else return None, as there is nothing in a new one.

        Raises:
            StepError: the disk is full, or the file cannot be written.
        """
        # Threads share the connection, which has one transaction at a time.
        with self._alone:
            try:
                return act()
            except sqlite3.DatabaseError as error:
                if error.sqlite_errorcode & 0xFF not in _DAMAGE:
                    raise self._unusable(error) from error
                self._set_aside(error)
                return act() if again else None

    def _open(self) -> None:
        try:
            files.make_folder(self._path.parent)
            self._base = _connect(self._path)
            # Since 3.13, Python warns of a connection that nobody closes, and `kept_files.database` keeps the
            # last. Not by `__del__`, which in a cycle may run after the connection's own end.
            weakref.finalize(self, self._base.close)
            _prepare(self._base, self._path)
            self._file = self._path.stat().st_ino
        except sqlite3.DatabaseError as error:
            if error.sqlite_errorcode & 0xFF not in _DAMAGE:
                raise self._unusable(error) from error
            self._file = self._path.stat().st_ino
            self._set_aside(error)
        except OSError as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> StepError:
        hints = ["check the free space and the rights of the workspace, then run the same command again"]
        return StepError("cannot use the kept results", where=self._path, why=str(error), hints=hints)

    def _set_aside(self, error: sqlite3.Error) -> None:
        with suppress(sqlite3.Error, AttributeError):
            self._base.close()
        # Another process may have done so already: the file that has this name is then a good one.
        with suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._file:
                names = (self._path.with_name(f"{self._path.name}.damaged-{number}") for number in count(1))
                aside = next(name for name in names if not name.exists())
                for ending in ("-wal", "-shm", ""):
                    files.rename_if_any(Path(f"{self._path}{ending}"), Path(f"{aside}{ending}"))
                console.warn(f"the kept results were damaged ({error}): begun anew; the old file is {aside}")
        self._open()


def is_ours(path: Path) -> bool:
    """Report whether a file is a database of results."""
    # By its header, see the page about the file format: to open it would create what it lacks.
    if not path.is_file():
        return False
    with untrusted.opened(path) as file:
        head = file.read(72)
    return head.startswith(b"SQLite format 3\0") and int.from_bytes(head[68:72], "big") == _OURS


def _connect(path: Path, *, read_only: bool = False) -> sqlite3.Connection:
    # `isolation_level=None`: the module would begin transactions of its own where nobody expects them.
    address = f"{path.absolute().as_uri()}{'?mode=ro' if read_only else ''}"
    return sqlite3.connect(
        address, uri=True, timeout=_PATIENCE, isolation_level=None, check_same_thread=False
    )


@contextmanager
def _connected(path: Path, *, read_only: bool = False) -> Iterator[sqlite3.Connection]:
    base = _connect(path, read_only=read_only)
    try:
        yield base
    finally:
        base.close()


def _prepare(base: sqlite3.Connection, path: Path) -> None:
    if not _check(base, path):
        # In one transaction: another process may be beginning the same file.
        base.execute("BEGIN IMMEDIATE")
        if not _check(base, path):
            for statement in (*_TABLES, f"PRAGMA application_id={_OURS}", f"PRAGMA user_version={_VERSION}"):
                base.execute(statement)
        base.execute("COMMIT")
    _begin_wal(base)
    base.execute(_ANSWERS)
    # A crash of the machine may lose the last results, but damages nothing (sqlite.org/wal.html).
    base.execute("PRAGMA synchronous=NORMAL")


def _begin_wal(base: sqlite3.Connection) -> None:
    # The one change that does not wait for other connections.
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            base.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(_MOMENT)
        else:
            return


def _check(base: sqlite3.Connection, path: Path) -> bool:
    """Report whether a database is ours; False if it is empty.

    Raises:
        FactError: it is not, or was written by a newer version.
    """
    # First: a process that makes the same file meanwhile commits its tables and its number at once.
    (tables,) = base.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    (ours,), (version,) = (
        base.execute(f"PRAGMA {name}").fetchone() for name in ("application_id", "user_version")
    )
    if tables and ours != _OURS:
        raise FactError("this is no database of kept results", where=path)
    if version > _VERSION:
        hints = ["use that version, or another workspace: TRITONSMITH_HOME"]
        raise FactError("these results were kept by a newer tritonsmith", where=path, hints=hints)
    return bool(tables)


def pack(parts: Mapping[str, bytes]) -> tuple[PackedFile, ...]:
    """Return files as they are kept, of their contents by their relative paths."""
    return tuple(
        PackedFile(path, sha256(content).hexdigest(), _packed(content)) for path, content in parts.items()
    )


def _packed(raw: bytes) -> bytes:
    return zstandard.ZstdCompressor(level=3, write_checksum=True).compress(raw)


def _unpacked(data: bytes) -> bytes:
    # A database may come from elsewhere: a few bytes could unpack to more than there is memory.
    size = zstandard.frame_content_size(data)
    if not 0 <= size <= untrusted.OURS:
        raise ValueError(f"a content of {size} bytes")
    return zstandard.ZstdDecompressor().decompress(data)
