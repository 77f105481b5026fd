"""Reads upstream's history into configs/triton-names.toml: passes, ops, types renamed or removed.

    .venv/bin/python tests/real/regenerate_names.py PATH_OF_A_CLONE [LAST_COMMIT]

A renaming is what one commit of main does: a record keeps its name in TableGen and prints as something
else, or a record goes and another one of its kind comes whose text is the same but for a few words. A removal
is a name that a commit takes away, that is no renaming, and that did not come back.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from pathlib import Path
from typing import cast

from tritonsmith.atlas import tablegen
from tritonsmith.atlas.source_files import Definition, SourceFiles
from tritonsmith.facts import checkout

from .regenerate_checkouts import COMMITS

STORE = Path(__file__).parents[2] / "configs" / "triton-names.toml"
_KINDS = ("pass", "op", "type", "attribute", "dialect")
_ALIKE = 0.75  # ratio of difflib: two records of one family have 0.5 and less, most renamed ones 0.9
_HEAD = """\
# Names of passes, ops, types, attributes and dialects that changed, read off every commit of upstream's
# main that changes a `.td` file, from {first} to {last} (tests/real/regenerate_names.py).
#
# `members` of a dialect: what it had in the commit that renamed it; `#` marks an attribute, `!` a type.
# `alike`: how much of the text stayed where the record's name went, too (absent: the record kept its name).
# `removed`: a name that no later commit brought back; `release` is the first line whose commit lacks it.
schema = 1
"""


class TreeOfCommit(SourceFiles):
    """The `.td` files of a commit."""

    def __init__(self, blobs: dict[str, str]) -> None:
        super().__init__(Path())
        self._texts = blobs
        self.__dict__["names"] = tuple(sorted(blobs))


class Blobs:
    """Contents of a clone, each read once."""

    def __init__(self, clone: Path) -> None:
        self._clone = clone
        self._known: dict[str, str] = {}

    def tree(self, commit: str) -> TreeOfCommit:
        """All `.td` files of a commit."""
        rows = [row.partition("\t") for row in git(self._clone, "ls-tree", "-r", commit).splitlines()]
        blobs = {name: head.split()[2] for head, _, name in rows if name.endswith(".td")}
        for sha in blobs.values():
            if sha not in self._known:
                self._known[sha] = git(self._clone, "cat-file", "blob", sha)
        return TreeOfCommit({name: self._known[sha] for name, sha in blobs.items()})


def git(clone: Path, *words: str) -> str:
    """Output of git."""
    answer = subprocess.run(("git", "-C", str(clone), *words), capture_output=True, check=True)
    return answer.stdout.decode("utf-8", errors="replace")


def renamings(
    before: Iterable[tuple[Definition, str]], after: Iterable[tuple[Definition, str]]
) -> Iterator[dict[str, object]]:
    """What a commit renames: definitions with their texts, before and after."""
    old = {(one.kind, one.name): (one, text) for one, text in before if one.kind in _KINDS}
    new = {(one.kind, one.name): (one, text) for one, text in after if one.kind in _KINDS}
    gone = {key: one for key, one in old.items() if key not in new}
    come = {key: one for key, one in new.items() if key not in old}
    dialects = {}
    for (kind, name), (one, _) in gone.items():
        same = next(
            (
                key[1]
                for key, (other, _) in come.items()
                if kind == key[0] == "dialect" and other.record == one.record
            ),
            "",
        )
        if same:
            dialects[name] = same
            members = sorted(
                _short(key[1])
                for key in gone
                if key[0] in ("op", "type", "attribute")
                and _dialect(key[1]) == name
                and (key[0], _moved(key[1], dialects)) in come
            )
            yield {"kind": "dialect", "before": name, "after": same, "members": members}
    pairs = []
    for (kind, name), (one, text) in gone.items():
        if kind == "dialect" or (kind, _moved(name, dialects)) in come:
            continue
        for (other_kind, other_name), (other, other_text) in come.items():
            if other_kind != kind or (kind, _moved(other_name, {v: k for k, v in dialects.items()})) in gone:
                continue
            kept = other.record == one.record
            alike = 1.0 if kept else SequenceMatcher(None, text, other_text, autojunk=False).ratio()
            if kept or alike >= _ALIKE:
                pairs.append((alike, kept, kind, name, other_name))
    taken: set[tuple[str, str]] = set()
    for alike, kept, kind, name, other_name in sorted(pairs, reverse=True):
        if (kind, name) not in taken and (kind, f">{other_name}") not in taken:
            taken |= {(kind, name), (kind, f">{other_name}")}
            yield {"kind": kind, "before": name, "after": other_name} | (
                {} if kept else {"alike": round(alike, 2)}
            )


def _short(name: str) -> str:
    mark = name[0] if name[0] in "#!" else ""
    return mark + name.partition(".")[2]


def _dialect(name: str) -> str:
    return name.lstrip("#!").partition(".")[0]


def _moved(name: str, dialects: dict[str, str]) -> str:
    head = _dialect(name)
    return name.replace(head, dialects[head], 1) if head in dialects and "." in name else name


def _read(tree: TreeOfCommit) -> list[tuple[Definition, str]]:
    made = []
    for one in tablegen.read_td(tree):
        lines = tree.text(one.file).splitlines()[one.line - 1 : one.end]
        made.append((one, "\n".join(line.strip() for line in lines)))
    return made


def history(clone: Path, first: str, last: str) -> Iterator[dict[str, object]]:
    """Every renaming between two commits, oldest first, and then every removal."""
    words = ("log", "--first-parent", "--reverse", "--format=%H %cs %s", f"{first}..{last}", "--", "*.td")
    blobs = Blobs(clone)
    known: dict[tuple[str, ...], list[tuple[Definition, str]]] = {}
    removed: dict[tuple[str, str], dict[str, object]] = {}
    for row in git(clone, *words).splitlines():
        commit, date, title = row.split(maxsplit=2)
        sides = []
        for name in (f"{commit}^", commit):
            tree = blobs.tree(name)
            key = tuple(tree._texts.values())
            known[key] = known.get(key) or _read(tree)
            sides.append(known[key])
        if len(known) > 4:  # a commit and its parent
            known.clear()
        renamed = [*renamings(*sides)]
        for one in renamed:
            yield one | {"date": date, "commit": commit[:10]}
        old, new = ({(one.kind, one.name) for one, _ in side if one.kind in _KINDS} for side in sides)
        for key in sorted(old - new - _renamed(renamed)):
            removed[key] = {"date": date, "commit": commit[:10], "title": title}
        for key in new:
            removed.pop(key, None)
    for (kind, name), about in removed.items():
        release = _first_release(clone, str(about["commit"]))
        yield {"kind": kind, "name": name, **about, "release": release}


def _renamed(rows: Iterable[dict[str, object]]) -> set[tuple[str, str]]:
    """The old names that a commit's renamings explain; a dialect takes its members along."""
    names = {(str(row["kind"]), str(row["before"])) for row in rows}
    for row in rows:
        for member in cast("list[str]", row.get("members", [])):
            mark = member[0] if member[0] in "#!" else ""
            kind = {"#": "attribute", "!": "type"}.get(mark, "op")
            names.add((kind, f"{mark}{row['before']}.{member.lstrip('#!')}"))
    return names


def _first_release(clone: Path, commit: str) -> str:
    """The first release line whose commit of main contains a commit."""
    for release in checkout.triton_releases():
        argv = [
            "git",
            "-C",
            str(clone),
            "merge-base",
            "--is-ancestor",
            commit,
            release.branched or release.commit,
        ]
        if subprocess.run(argv, capture_output=True, check=False).returncode == 0:
            return release.version
    return ""


def as_toml(rows: Iterable[dict[str, object]], first: str, last: str) -> str:
    """The file."""
    blocks = [_HEAD.format(first=first[:10], last=last[:10])]
    blocks += (
        f"[[{'renamed' if 'before' in row else 'removed'}]]\n"
        + "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items())
        for row in rows
    )
    return "\n".join(blocks)


if __name__ == "__main__":
    ends = COMMITS["2.1"], sys.argv[2] if len(sys.argv) > 2 else COMMITS["main"]
    STORE.write_text(as_toml(history(Path(sys.argv[1]), *ends), *ends), encoding="utf-8")
