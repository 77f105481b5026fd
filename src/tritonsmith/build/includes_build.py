"""A Ninja file that compiles sources without their precompiled header, for the errors alone.

`python -m tritonsmith.build.includes_build --output build.ninja DATABASE SOURCE... --header HEADER SOURCE`:
the commands are those of the build (compile_commands.json), less the header and what they write. A header is
compiled by itself, with the command of a source that includes it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tritonsmith.core.plan import files

_WRITES = ("-o", "-MF", "-MT", "-MQ")
_HEADER = re.compile(r"-include-pch|-include")
_AS_SOURCE = ("-Wno-pragma-once-outside-header", "-x", "c++")  # clang's: no other compiler gets headers
_ESCAPED = re.compile(r"([$ :])")


def render(
    database: Iterable[Mapping[str, Any]], sources: Iterable[str], headers: Iterable[tuple[str, str]] = ()
) -> str:
    """Return the text of the Ninja file; sources that are not in the database are skipped.

    Args:
        database: entries of compile_commands.json.
        sources: sources to compile.
        headers: headers to compile, each with a source that includes it.
    """
    checks = {source: [source] for source in sources}
    for header, source in headers:
        checks.setdefault(source, []).append(header)
    lines = ["rule check", "  command = cd $folder && $argv", "  description = Checking $source"]
    for entry in database:
        for file in checks.pop(entry["file"], ()):
            name = _ESCAPED.sub(r"$\1", file)
            words = _kept(shlex.split(entry["command"]))
            # clang would write a precompiled header for a file that ends in `.h`.
            language = _AS_SOURCE if file != entry["file"] else ()
            argv = [
                part for word in words for part in ((*language, file) if word == entry["file"] else (word,))
            ]
            values = {
                "folder": shlex.quote(entry["directory"]),
                "argv": shlex.join((*argv, "-fsyntax-only")),
                "source": file,
            }
            # No command writes this output, so Ninja repeats the check in each run.
            lines.append(f"build {name}.checked: check")
            lines += [f"  {key} = {value.replace('$', '$$')}" for key, value in values.items()]
    return "\n".join(lines) + "\n"


def _kept(words: list[str]) -> Iterator[str]:
    """Yield a compile's words, without its header (`-Xclang -include-pch -Xclang FILE`) and its outputs."""
    at = 0
    while at < len(words):
        word, following = words[at], words[at + 1 : at + 2]
        # The precompiled header takes four words: `-Xclang -include-pch -Xclang FILE`.
        if word == "-Xclang" and following and _HEADER.fullmatch(following[0]):
            at += 4
        elif word in _WRITES:
            at += 2
        else:
            if word != "-c":
                yield word
            at += 1


def main(argv: list[str] | None = None) -> int:
    """Run the command line: print how many sources will be compiled."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("database", type=Path)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--header", nargs=2, action="append", default=[], metavar=("HEADER", "SOURCE"))
    arguments = parser.parse_args(argv)
    text = render(
        json.loads(arguments.database.read_text(encoding="utf-8")), arguments.sources, arguments.header
    )
    files.write_atomically(arguments.output, text)
    requested = len(arguments.sources) + len(arguments.header)
    print(f"{text.count('.checked: check')} of {requested} files are compiled by this build")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
