"""`build-triton --check-includes`: find code that compiles only because of a precompiled header.

The plan writes a Ninja file that compiles sources without their precompiled header, for the errors alone, by
this module as a program: `python -m tritonsmith.build.triton.check_includes --output build.ninja DATABASE
SOURCE... --header HEADER SOURCE`. The commands are those of the build (compile_commands.json), less the
header and what they write. A header is compiled by itself, with the command of a source that includes it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tritonsmith.build import cmake, diagnose, precompiled_headers
from tritonsmith.build.triton import commands, recipe, suspects
from tritonsmith.build.triton.recipe import Inputs
from tritonsmith.build.triton.source import TritonSource
from tritonsmith.core import untrusted
from tritonsmith.core.envs import receipts
from tritonsmith.core.envs.receipts import Session
from tritonsmith.core.envs.settings import Settings
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import StepError, UsageError
from tritonsmith.core.plan import BuildObjects, MakeDir, Plan, Run, files
from tritonsmith.core.plan.steps.base import CommandFailedError
from tritonsmith.facts import build_folder, git

PHASE = "compile without precompiled headers"
FOLDER = "tritonsmith-includes"
# clang's messages: no other compiler gets precompiled headers here.
_MISSING = re.compile(
    r"(?:undeclared identifier|unknown type name|no (?:member|type|template) named|incomplete type(?: named)?"
    r"|undefined template) '(?:[\w:]*::)?(\w+)"
)
_DECLARES = (
    r"^\s*(?:template\s*<.*>\s*)?(?:class|struct|enum(?: class)?|using|#\s*define) (?:\w+ )?{}\b(?!\s*;)"
)
_LIMIT = 8 << 20  # bytes of a header
# What the Ninja file leaves out: the outputs of a compile, and the words of its precompiled header.
_WRITES = ("-o", "-MF", "-MT", "-MQ")
_HEADER = re.compile(r"-include-pch|-include")
_AS_SOURCE = ("-Wno-pragma-once-outside-header", "-x", "c++")  # clang's: no other compiler gets headers
_ESCAPED = re.compile(r"([$ :])")


@dataclass(frozen=True)
class IncludeCheck:
    """The files that will be compiled without a precompiled header.

    Attributes:
        inputs: facts and settings, as for `build-triton`.
        changed: changed sources and headers, with the source compiled for each (`suspects.compiled_for`).
        base: branch that they differ from.
        warnings: warnings of the preflight.
        again: configure even if nothing changed.
        receipt: inputs of the build, if they differ from the last build's; else empty.
    """

    inputs: Inputs
    changed: Mapping[Path, Path | None]
    base: str
    warnings: tuple[str, ...] = ()
    again: bool = False
    receipt: Mapping[str, Any] = field(default_factory=dict)

    @property
    def sources(self) -> tuple[Path, ...]:
        """The sources to compile, as far as this build compiles them."""
        return tuple(dict.fromkeys(path for path in self.changed.values() if path))

    @property
    def headers(self) -> Mapping[Path, Path]:
        """The headers to compile by themselves, each with a source that includes it."""
        return {path: source for path, source in self.changed.items() if source and source != path}

    @property
    def count(self) -> int:
        """The number of files to compile without a precompiled header."""
        return len(self.sources) + len(self.headers)

    @property
    def objects(self) -> BuildObjects:
        """The step that compiles them as usual."""
        tools, jobs = self.inputs.tools, self.inputs.jobs.compile
        return BuildObjects(tools.ninja, self.inputs.env.build, jobs, self.sources, phase=recipe.PHASE_BUILD)

    @property
    def plan(self) -> Plan:
        """The recipe: configure, compile as usual, so that all headers exist, then check the includes."""
        build, tools, jobs = self.inputs.env.build, self.inputs.tools, self.inputs.jobs.compile
        folder, names = build / FOLDER, list(map(str, self.sources))
        for header, source in self.headers.items():
            names += ("--header", str(header), str(source))
        write = (
            sys.executable,
            "-m",
            "tritonsmith.build.triton.check_includes",
            "--output",
            str(folder / "build.ninja"),
        )
        steps = (
            *recipe.before_compiles(self.inputs, again=self.again),
            # Compiled as usual first: that generates the headers of TableGen that the others include.
            self.objects,
            MakeDir(folder, phase=PHASE),
            Run((*write, str(build / "compile_commands.json"), *names), cwd=build, phase=PHASE),
            # All failures at once, as each shows another missing include.
            cmake.build_targets(folder, tools, targets=("-k", "0"), jobs=jobs, phase=PHASE),
        )
        return Plan(
            f"includes of {len(self.sources)} files, changed since {self.base}", steps if self.sources else ()
        )


def prepare(
    settings: Settings,
    space: Workspace,
    located: TritonSource,
    base: str = "",
    *,
    force: bool = False,
    again: bool = False,
) -> IncludeCheck:
    """Choose what to compile.

    Args:
        settings: settings of the env.
        space: the workspace.
        located: the checkout.
        base: branch to merge this one into; empty to search for upstream's.
        force: continue despite the preflight's findings.
        again: configure even if nothing changed.

    Raises:
        FactError: there is no checkout, no LLVM yet, or git has no such branch.
        PreflightError: the build would fail.
        UsageError: this build has no precompiled headers.
    """
    inputs, request, warnings = commands.gather_checked(settings, space, located, force=force, again=again)
    if not inputs.precompiled:
        raise UsageError("this build has no precompiled headers, so no missing #include is hidden")
    changes = git.branch_changes(inputs.checkout.root, base)
    changed = suspects.compiled_for(inputs.checkout.root, changes.files)
    receipt, last = commands.receipt_of(inputs, request), commands.last_settings(inputs.env)
    # With the settings of the last build, its record stays true.
    receipt = {} if receipt["settings"] == last else receipt
    return IncludeCheck(inputs, changed, changes.base, warnings, again, receipt)


def execute(check: IncludeCheck, session: Session) -> tuple[Path, ...]:
    """Compile, and explain the failures.

    Returns:
        The changed files that were not checked: this build compiles neither them nor their includers.

    Raises:
        StepError: includes are missing, or nothing was checked.
    """
    # The folder is now configured differently, and not built: the record says so.
    if check.receipt:
        only = StepError("only the includes were checked")
        session.run_unseen(
            receipts.unfinished_steps(session.env, session.task, check.receipt, session.log, only)
        )
    try:
        session.run(check.plan)
    except CommandFailedError as failure:
        explained = explain(failure, check) if failure.step.phase == PHASE else diagnose.explain(failure)
        raise explained from failure
    compiled = check.objects.compiled_sources() if check.sources else ()
    unchecked = tuple(path for path, source in check.changed.items() if str(source) not in compiled)
    if unchecked and not compiled:
        raise StepError(
            "nothing was checked",
            where=unchecked[0],
            why=f"this build compiles none of the {len(unchecked)} files that differ from {check.base}",
            hints=["build their backend or plugin, too: --backends, --plugin-dir, --proton"],
        )
    return unchecked


def explain(failure: CommandFailedError, check: IncludeCheck) -> StepError:
    """Return the error for all files that failed: the missing names, and the headers that declare them."""
    build, ninja = check.inputs.env.build, check.inputs.tools.ninja
    compiled = sorted(build.glob(f"CMakeFiles/{precompiled_headers.PREFIX.lower()}_*.dir/*.pch"))
    headers = build_folder.recorded_headers(ninja, build, (str(path.relative_to(build)) for path in compiled))
    failed = diagnose.failing(failure.output)
    lines: list[str] = []
    for _, error in failed:
        lines += [line for line in error.lines if "error: " in line][:1] or error.lines[:1]
        names = dict.fromkeys(_MISSING.findall("\n".join(error.block)))
        lines += [f"  {name}: {line}" for name in names if (line := _declaring(name, headers))]
    first = failed[0][1] if failed else None
    return StepError(
        f"without the precompiled header, {len(failed)} of {check.count} files fail to compile",
        where=f"{first.file}:{first.line}" if first and first.file else failure.log,
        why="\n".join(lines),
        hints=["include what is missing: upstream compiles without that header", f"full log: {failure.log}"],
    )


def _declaring(name: str, headers: Iterable[Path]) -> str:
    """Return the `#include` line for a type; empty if no header declares it on one line."""
    pattern = re.compile(_DECLARES.format(re.escape(name)), re.MULTILINE)
    for path in headers:
        try:
            declaration = pattern.search(untrusted.read_text(path, _LIMIT))
        except OSError:
            continue
        # A header of the standard library's has names of its own for everything.
        if declaration and "/c++/" not in str(path):
            return f'#include "{path.as_posix().rpartition("include/")[2]}"'
    return ""


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
