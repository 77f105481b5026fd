"""The folder of `passes.isolate`: everything that an upstream issue needs, and nothing private."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tritonsmith.compiler.replay.replayer import Replayer
from tritonsmith.core.errors import FactError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Write
from tritonsmith.core.process import capture
from tritonsmith.facts import checkout as checkouts
from tritonsmith.facts import installed_tritons, libtriton, package_owners, python_env
from tritonsmith.facts.checkout import TritonCheckout
from tritonsmith.lab import failure
from tritonsmith.lab.isolate.failing_pass import Isolated
from tritonsmith.lab.reduce.reduce_ir import Reduced

TEMPLATE = Path(__file__).with_name("reproduce.py.in")
# A folder with any other file is never written to.
FILES = ("input.mlir", "reduced.mlir", "command.sh", "reproduce.py", "error.txt", "README.md")
# As `headed` writes it: `reduce` takes its passes from the file.
_RUN = re.compile(r"^// RUN: triton-opt %s --pass-pipeline='([^'\n]*)'", re.MULTILINE)
_LINES = 12  # of the error, in the README
_MODIFIED = " (modified: the checkout has changes that are not committed)"
# `python -c` imports from the current folder first, and that may be a stranger's, or a checkout of Triton.
_NOWHERE = Path("/")


@dataclass(frozen=True)
class About:
    """The facts that an issue report needs.

    Attributes:
        triton: version; empty if unknown.
        commit: of Triton's checkout, with a remark if files were modified since; empty if unknown.
        llvm: version and commit, as far as known.
        python: version.
        system: of this machine.
    """

    triton: str
    commit: str
    llvm: str
    python: str
    system: str


def about(isolated: Isolated, tool: Replayer) -> About:
    """Collect the facts about a failure."""
    installed = installed_tritons.of_python(tool.python) if tool.python else None
    version = (installed.version if installed else "") or isolated.passes.index.triton
    checkout, commit, python = _checkout(tool), "", ""
    if checkout:
        # An interpreter has said which version it runs; a `triton-opt` only has its checkout.
        version = checkout.version if tool.opt else version
        commit = f"{checkout.commit}{_MODIFIED if checkout.dirty else ''}"
    if tool.python:
        code = "import platform; print(platform.python_version())"
        python = capture((str(tool.python.absolute()), "-c", code), cwd=_NOWHERE) or ""
    return About(version, commit, _llvm(tool), python, system())


def system() -> str:
    """Return the name of the system: `Debian GNU/Linux 12 (bookworm), x86_64`."""
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", platform.system())
    except OSError:
        name = platform.system()
    return f"{name}, {platform.machine()}"


def _checkout(tool: Replayer) -> TritonCheckout | None:
    """Read the checkout that the program was built from, or the interpreter's Triton is installed from."""
    source = tool.source if tool.opt else _editable(tool)
    try:
        return checkouts.read(source) if source else None
    except FactError:
        return None


def _editable(tool: Replayer) -> Path | None:
    packages = python_env.read(tool.python) if tool.python else None
    owners = package_owners.owners(packages.distributions) if packages else ()
    # A wheel names no checkout; only an editable install does.
    project = next((owner.editable.project for owner in owners if owner.editable), None)
    return project.parent if project and project.name == "python" else project  # where setup.py was, to 3.3


def _llvm(tool: Replayer) -> str:
    if tool.opt:
        version = re.search(r"LLVM version (\S+)", capture((str(tool.opt), "--version")) or "")
        checkout = _checkout(tool)
        pin = f"pinned at {checkout.pins[0].commit}" if checkout and checkout.pins else ""
        return ", ".join(filter(None, (version[1] if version else "", pin)))
    # Found, not imported: libtriton may be what crashes.
    code = "import importlib.util as u, os; print(os.path.dirname(u.find_spec('triton').origin))"
    package = capture((str(tool.python.absolute()), "-c", code), cwd=_NOWHERE) if tool.python else ""
    for path in libtriton.find(Path(package)) if package else ():
        library = libtriton.read(path)
        return " ".join(filter(None, (library.llvm_version, library.llvm_commit)))
    return ""


def plan(isolated: Isolated, reduced: Reduced | None, facts: About, out: Path) -> Plan:
    """Plan the files of an issue, in a folder that is new or has only such files.

    Raises:
        UsageError: the folder has other content.
    """
    known = {path.name for path in out.iterdir()} if out.is_dir() else set()
    if out.exists() and (not out.is_dir() or known - set(FILES)):
        what = "--out exists and was not written by passes.isolate"
        raise UsageError(what, where=out, hints=["choose a new folder"])
    return Plan("isolate", (MakeDir(out, phase="isolate"), *_files(isolated, reduced, facts, out)))


def _files(isolated: Isolated, reduced: Reduced | None, facts: About, out: Path) -> Iterator[Write]:
    pipeline = isolated.way.pipeline
    texts = {"input.mlir": headed(isolated.text, pipeline)}
    if reduced:
        texts["reduced.mlir"] = headed(reduced.text, pipeline)
    file = "reduced.mlir" if reduced else "input.mlir"
    texts["command.sh"] = command(pipeline, file, facts, calls=bool(isolated.way.calls))
    if isolated.way.calls:
        texts["reproduce.py"] = reproduce(isolated)
    texts["error.txt"] = failure.anonymous(isolated.log.strip()) + "\n"
    texts["README.md"] = readme(isolated, reduced, facts)
    for name, text in texts.items():
        yield Write(out / name, text, phase="isolate")


def headed(text: str, pipeline: str) -> str:
    """Return IR with a RUN line, as upstream's tests have it."""
    return f"// RUN: triton-opt %s --pass-pipeline='{pipeline}'\n\n{text.strip()}\n"


def pipeline_of(text: str) -> str:
    """Return the pipeline of such a line; empty if there is none."""
    match = _RUN.search(text)
    return match[1] if match else ""


def command(pipeline: str, file: str, facts: About, *, calls: bool) -> str:
    """Return the text of `command.sh`."""
    # Whoever reads an issue has a build or a wheel, rarely both.
    lines = [
        "#!/bin/sh",
        "# With a build of Triton; set TRITON_OPT to its triton-opt.",
        'cd "$(dirname "$0")" || exit',
        'if command -v "${TRITON_OPT:-triton-opt}" > /dev/null; then',
        f'  exec "${{TRITON_OPT:-triton-opt}}" {file} {shlex.quote(f"--pass-pipeline={pipeline}")}',
        "fi",
    ]
    if calls:
        lines += [
            f"# With a released wheel: pip install triton=={facts.triton}",
            f'exec "${{PYTHON:-python3}}" reproduce.py {file}',
        ]
    else:
        lines += ["echo 'triton-opt is not on PATH; set TRITON_OPT to its path' >&2", "exit 127"]
    return "\n".join(lines) + "\n"


def reproduce(isolated: Isolated) -> str:
    """Return the text of `reproduce.py`, which needs Triton and nothing else."""
    pairs = "".join(f"    ({call.binding!r}, {list(call.arguments)!r}),\n" for call in isolated.way.calls)
    return TEMPLATE.read_text(encoding="utf-8").replace("@CALLS@", pairs.rstrip("\n"))


def readme(isolated: Isolated, reduced: Reduced | None, facts: About) -> str:
    """Return the text of `README.md`."""
    several = len(isolated.links) > 1
    rows = {
        "pass" if not several else "passes": isolated.names,
        "target": isolated.passes.kernel.target,
        "Triton": " ".join(filter(None, (facts.triton, facts.commit))),
        "LLVM": facts.llvm,
        "Python": facts.python,
        "system": facts.system,
    }
    table = "".join(f"| {name} | {value or 'unknown'} |\n" for name, value in rows.items())
    error = list(_without_ir(failure.anonymous(isolated.log.strip())))[:_LINES]
    parts = [
        f"# {isolated.names}: {isolated.failure.kind}",
        f"{isolated.failure}",
        f"| | |\n|---|---|\n{table}".rstrip(),
        "```\n" + "\n".join(line[:400] for line in error) + "\n```",
        f"    triton-opt input.mlir --pass-pipeline='{isolated.way.pipeline}'",
        "`command.sh` runs this command, or `reproduce.py` with a wheel."
        if isolated.way.calls
        else "`command.sh` runs this command.",
    ]
    if several:
        parts.append(
            "The last pass does not fail alone: this is the shortest end of the pipeline that fails."
        )
    if not isolated.same:
        parts.append(f"In the original compile, the failure was different: {isolated.recorded}")
    if reduced:
        parts.append(
            f"`reduced.mlir` fails in the same way: {reduced.after.ops} operations of {reduced.before.ops}, "
            f"{reduced.after.lines} lines of {reduced.before.lines}."
        )
    gone = "Locations were removed from the IR, and" if isolated.stripped else "It fails only with locations;"
    where = "" if isolated.stripped else " from the locations and"
    parts.append(f"{gone} folders were removed{where} from the error: these files contain no private paths.")
    # The error below the table has no folders any more.
    return failure.anonymous("\n\n".join(parts[:3])) + "\n\n" + "\n\n".join(parts[3:]) + "\n"


def _without_ir(log: str) -> Iterator[str]:
    """Yield the lines of a log without the module that a compiler prints after an assertion."""
    inside = False
    for line in log.splitlines():
        inside = inside or line.startswith(("module", "#"))
        if not inside:
            yield line
        inside = inside and line != "#-}"  # the end of the resources, which the printer puts last
