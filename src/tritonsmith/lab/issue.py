"""An issue that is ready to be posted, in the form of the repository that it belongs to.

It is written from the evidence that `lab/issue_sources.py` has collected, and says what was run before it was
written. Whoever reads it has Triton, and not this tool.
"""

from __future__ import annotations

import html
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from tritonsmith.compiler import tritons
from tritonsmith.compiler.replay import bindings
from tritonsmith.core import configs, process, redact
from tritonsmith.core.command_line import command, typed
from tritonsmith.core.envs.workspace import Workspace
from tritonsmith.core.errors import FactError, SmithError, UsageError
from tritonsmith.core.plan import MakeDir, Plan, Write, files
from tritonsmith.core.text import code_span, fenced
from tritonsmith.core.ui import tables
from tritonsmith.core.ui.tables import Grid
from tritonsmith.lab import failure, terms
from tritonsmith.lab.evidence import BisectCulprit, BugEvidence, IssueIr, bounded, rejection
from tritonsmith.lab.isolate import issue_folder
from tritonsmith.lab.reduce import oracles
from tritonsmith.lab.triage.reduce import testers
from tritonsmith.lab.triage.reduce.testers import Symptom

BODY, TITLE, LOG = "issue.md", "title.txt", "error.txt"
IR, RUN_IR, LLIR = "input.mlir", "reproduce.py", "kernel.ll"
_SHORT = 12  # digits of a commit
_ANY = ("FILE:KERNEL", "--signature", "...", "--target", "...")
_UPSTREAM = "https://github.com/triton-lang/triton"
_LLVM = "https://github.com/llvm/llvm-project"
# Facts come from files: what is no version and no commit becomes no part of a path, a command or a link.
_RELEASE = re.compile(r"\d[\w.]*(?:\+[\w.]+)?", re.ASCII)
_COMMIT = re.compile(r"[0-9a-f]{40}")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_CHANGED = re.compile(r"(?P<metric>[a-z]\w*) (?P<value>[\d.]+) -> ")
_NUMBER = re.compile(r"(?P<metric>[a-z]\w*) (?:[\d.]+ -> )?(?P<value>\d+)")
# What ptxas prints with `-v`, and the assembly of AMD has as a comment.
_PRINTED = {
    "registers": (re.compile(r"Used (\d+) registers"), re.compile(r"\.vgpr_count:\s+(\d+)")),
    "spills": (re.compile(r"(\d+) bytes spill (?:stores|loads)"), re.compile(r"_spill_count:\s+(\d+)")),
}
_NOT_RUN = "--not-run"
_THE_KERNEL = "the kernel"
_FEW = 3  # passes that a title names
_LANGUAGES = {".py": "python", ".mlir": "mlir", ".ll": "llvm"}

# `ran`: nothing that a command prints shows a wrong result without a GPU.
Status = Literal["shown", "ran", "other", "not run"]


@dataclass(frozen=True)
class Script:
    """A file, and the command that shows the bug with Triton alone.

    Attributes:
        name: of the file.
        text: its content.
        argv: arguments of Python.
        shell: the command line, for a shell.
        helper: a second file that the command needs, by its name.
        status: whether it was run, and showed the bug.
        outcome: what came of it, as a sentence, or why it was not run.
        printed: what it printed.
    """

    name: str
    text: str
    argv: tuple[str, ...]
    shell: str
    helper: Mapping[str, str] = field(default_factory=dict)
    status: Status = "not run"
    outcome: str = ""
    printed: str = ""


@dataclass(frozen=True)
class Unknown:
    """Something that is left out, and the command of this tool that finds it out; empty if there is none."""

    what: str
    hint: str = ""


@dataclass(frozen=True)
class Issue:
    """An issue.

    Attributes:
        repository: `triton-lang/triton`.
        title: one line.
        body: Markdown.
        attachments: names of files that did not fit the body.
        files: all files beside the body, by name.
        scripts: commands that show the bug.
        unknown: what is left out.
    """

    repository: str
    title: str
    body: str
    attachments: tuple[str, ...]
    files: Mapping[str, str]
    scripts: tuple[Script, ...]
    unknown: tuple[Unknown, ...]

    def command(self, out: Path) -> str:
        """Return the command of GitHub's `gh` that posts it."""
        words = ("gh", "issue", "create", "--repo", self.repository, "--title", self.title)
        return shlex.join((*words, "--body-file", str(out / BODY)))


def write(
    evidence: BugEvidence, owner: str, python: Path | None, space: Workspace, *, run: bool, timeout: int
) -> Issue:
    """Write an issue; its commands are run before, where that is possible.

    Args:
        evidence: what is known.
        owner: whose repository: a key of `owners`; empty for the component that is blamed.
        python: an interpreter with Triton that runs the commands; None for that of the evidence.
        space: the workspace.
        run: run the commands.
        timeout: seconds of one run.

    Raises:
        FactError: Triton's front end rejects the kernel, no other Triton takes it, and no owner was named.
        UsageError: there is no such owner.
    """
    owners = configs.load("issue-forms")["owners"]
    if owner and owner not in owners:
        raise UsageError(f"--for cannot be {owner!r}", hints=[f"--for {name}" for name in owners])
    # One for the whole issue: what is hidden in the body must not stand in a file beside it.
    hide = redact.redactor({space.root: "$TRITONSMITH_HOME"})
    _refuse_rejected(evidence, owner)
    where = python or interpreter_of(evidence, space)
    chosen = owner or owner_of(evidence)
    possible = [_kernel_script(evidence, hide.in_place), _ir_script(evidence, where, space)]
    # Of a wrong result, the pass shows more than the kernel, which compiles.
    possible = possible[::-1] if evidence.kind == "wrong" else possible
    possible += [_llc_script(evidence, hide.in_place)] if chosen == "llvm" else []
    scripts = [script for script in possible if script]
    scripts = [_tried(script, evidence, where, hide, run=run, timeout=timeout) for script in scripts]
    evidence = _with_rejection(evidence, scripts)
    _refuse_rejected(evidence, owner)
    # Of a dump, the version of Python is not recorded: the one that ran the scripts is.
    by = _version(where) if where and any(script.status != "not run" for script in scripts) else ""
    return _Draft(evidence, chosen, scripts, hide, by).issue()


def _with_rejection(evidence: BugEvidence, scripts: Sequence[Script]) -> BugEvidence:
    """Return the evidence with what the front end has said when the scripts were run."""
    # A file of `reduce` has the message alone; with which part of Triton it came, only the traceback tells.
    if evidence.rejected or evidence.failure is None:
        return evidence
    reasons = (rejection(script.printed, evidence.failure) for script in scripts if script.status == "shown")
    return replace(evidence, rejected=next(filter(None, reasons), ""))


def _refuse_rejected(evidence: BugEvidence, owner: str) -> None:
    """Refuse an issue about an error in the kernel, unless the user has chosen whose it is.

    Raises:
        FactError: the front end rejects the kernel, and no other Triton is known to take it.
    """
    if not evidence.rejected or owner or _accepted_by(evidence):
        return
    raise FactError(
        f"this looks like an error in the kernel: {evidence.rejected}",
        why="Triton's front end rejects it, which is no evidence of a bug",
        hints=["if Triton should accept it: --for triton writes the issue anyway"],
    )


def _accepted_by(evidence: BugEvidence) -> str:
    """Return a Triton that takes the kernel, which makes a rejection by another one a regression."""
    good = (version for version, verdict, _ in evidence.tested if verdict == "good")
    return next(good, evidence.culprit.good if evidence.culprit else "")


def _version(python: Path) -> str:
    """Return the version of an interpreter; empty if it does not run."""
    return process.capture((str(python), "-c", "import platform; print(platform.python_version())")) or ""


def owner_of(evidence: BugEvidence) -> str:
    """Return whose the issue is: the owner of what is proven to be to blame, or else Triton."""
    return next((row.owner for row in evidence.blamed if row.proven), "triton")


def interpreter_of(evidence: BugEvidence, space: Workspace) -> Path | None:
    """Return an interpreter here with the Triton that shows the bug; None if there is none."""
    pythons = list(tritons.pythons_of(evidence.package.parent)) if evidence.package else []
    # It comes from a file, and becomes a part of a path.
    if _RELEASE.fullmatch(evidence.triton):
        pythons.append(space.env(f"{tritons.WHEEL}{evidence.triton}").python)
    fitting = (path for path in pythons if path.is_file() and tritons.installed(path) == evidence.triton)
    return next(fitting, None)


def _kernel_script(evidence: BugEvidence, hide: Callable[[str], str]) -> Script | None:
    """Return the script that compiles the kernel with Triton alone; None if it cannot be made."""
    kernel = evidence.kernel
    if kernel is None:
        return None
    # Hidden before it is run: if that breaks the script, the run says so.
    text = hide(kernel.text)
    if not kernel.alone:
        metric = next((name for name in _PRINTED if name in evidence.metric), "")
        limits = terms.parse([f"{metric}>0"], "--when") if metric else ()
        symptom = Symptom(evidence.triton, "", 0, "", limits, wrong=evidence.kind == "wrong")
        main = testers.main_program(kernel.text, symptom, kernel.request)
        # A script that imports the user's other files works nowhere else.
        if not main or kernel.imports:
            return None
        text = f"{text.rstrip()}\n\n\n{main}"
    return Script(kernel.name, text, (kernel.name,), f"python {shlex.quote(kernel.name)}")


def _ir_script(evidence: BugEvidence, python: Path | None, space: Workspace) -> Script | None:
    """Return the script that runs the passes on the IR; None if there is no IR."""
    ir = evidence.ir
    if ir is None:
        return None
    text, shell = issue_folder.headed(ir.text, ir.pipeline), _triton_opt(ir)
    if python is None:
        return Script(IR, text, (), shell)
    try:
        calls = oracles.calls(ir.pipeline, bindings.known_bindings(python, space), python)
    except SmithError:
        return Script(IR, text, (), shell)  # a pass without a binding: only triton-opt runs it
    # Made anew, not taken from the folder of `passes.isolate`, which may be a stranger's.
    helper = issue_folder.reproduce(calls)
    if evidence.kind == "wrong":
        helper = helper.replace('print("it passed")', "print(module)")
    return Script(IR, text, (RUN_IR, IR), shell, {RUN_IR: helper})


def _llc_script(evidence: BugEvidence, hide: Callable[[str], str]) -> Script | None:
    """Return the IR of LLVM, and how Triton calls the code generator; None if the results have none."""
    if not evidence.llir:
        return None
    shell = shlex.join(("llc", *evidence.llc, LLIR, "-o", "kernel.s"))
    return Script(LLIR, hide(evidence.llir), (), shell)


def _triton_opt(ir: IssueIr) -> str:
    return f"triton-opt {IR} --pass-pipeline={shlex.quote(ir.pipeline)}"


def _tried(
    script: Script,
    evidence: BugEvidence,
    python: Path | None,
    hide: Callable[[str], str],
    *,
    run: bool,
    timeout: int,
) -> Script:
    """Run a script in a folder of its own, with an empty cache, and tell what came of it."""
    if not run or not script.argv or python is None:
        release = f"Triton {evidence.triton}" if evidence.triton else "a Triton that shows it"
        missing = f"{release} is not installed here" if python is None else "no binding runs these passes"
        missing = "it needs an llc of the LLVM named below" if script.name == LLIR else missing
        return replace(script, outcome=missing if run else _NOT_RUN)
    version, by = tritons.installed(python), ""
    if version != evidence.triton:
        by = f", by Triton {version or 'of an unknown version'}, not {evidence.triton or 'a known one'}"
    with files.scratch("issue-") as folder:
        for name, text in {script.name: script.text, **script.helper}.items():
            files.write(folder / name, text)
        # What is found in a cache is not compiled, and shows nothing.
        change = {"TRITON_CACHE_DIR": str(folder / "cache"), "PYTHONPATH": None, "TRITON_INTERPRET": None}
        answer = process.query((str(python), *script.argv), cwd=folder, change=change, timeout=timeout)
    # A compile that does not end may be the very bug.
    if answer is None:
        ended = f"it does not end in {timeout} s{by}"
        same = evidence.failure is not None and evidence.failure.kind == "timeout"
        return replace(script, status="shown" if same else "other", outcome=ended)
    printed = bounded(f"{answer.out}\n{answer.err}")
    status, sentence = _judged(evidence, script, printed, answer.code)
    return replace(script, status=status, outcome=f"{sentence}{by}", printed=hide(failure.anonymous(printed)))


def _judged(evidence: BugEvidence, script: Script, printed: str, code: int) -> tuple[Status, str]:
    """Return whether a run showed the bug, and what it showed."""
    if evidence.failure:
        if failure.is_shown(evidence.failure, printed, code):
            return "shown", "it fails in the same way"
        return "other", f"it ends in another way, with the exit code {code}"
    if code:
        return "other", f"it fails, with the exit code {code}"
    if evidence.kind == "wrong":
        what = "it prints the IR that the pass leaves" if script.name == IR else "it compiles the kernel"
        return "ran", what
    # The value after the arrow: the bad side's, by whose Triton it was run.
    numbers = {row["metric"]: int(row["value"]) for row in _NUMBER.finditer(evidence.observed)}
    for metric, forms in _PRINTED.items():
        values = [int(value) for form in forms for value in form.findall(printed)]
        if metric in numbers and values:
            total = sum(values) if metric == "spills" else max(values)
            return "shown" if total == numbers[metric] else "other", f"it prints {metric} {total}"
    return "other", "it compiles, and prints no figure of this kind"


@dataclass(frozen=True)
class _Draft:
    """The text of an issue, from its parts.

    Attributes:
        evidence: what is known.
        owner: whose it is.
        scripts: commands that show the bug, after their runs.
        hide: removes secrets, names and folders of this machine.
        by: version of the Python that ran them; empty if they were not run.
    """

    evidence: BugEvidence
    owner: str
    scripts: Sequence[Script]
    hide: redact.Redactor
    by: str = ""

    @property
    def _limits(self) -> Mapping[str, int]:
        limits: Mapping[str, int] = configs.load("issue-forms")["limits"]
        return limits

    @property
    def _form(self) -> Mapping[str, Any]:
        """The form; what is ptxas's goes to Triton."""
        table = configs.load("issue-forms")
        form: Mapping[str, Any]
        for form in table["form"]:
            repository = table["owners"][form["owner"]]["repository"]
            if repository == self._repository and self.evidence.kind in form["kinds"]:
                return form
        raise AssertionError(f"no form of {self._repository} for {self.evidence.kind}")

    @property
    def _repository(self) -> str:
        repository: str = configs.load("issue-forms")["owners"][self.owner]["repository"]
        return repository

    def issue(self) -> Issue:
        """Return the issue; of its files, the largest are attached until the body is short enough."""
        beside = self._files()
        # GitHub refuses a longer body, and `gh` would lose what was typed.
        inline = {name for name, text in beside.items() if len(text) <= self._limits["inline"]}
        while len(body := self._body(beside, inline)) > self._limits["body"] and inline:
            inline.remove(max(inline, key=lambda name: len(beside[name])))
        attached = tuple(name for name in beside if name not in inline)
        unknown = tuple(self._unknown())
        return Issue(self._repository, self.title(), body, attached, beside, tuple(self.scripts), unknown)

    def title(self) -> str:
        """Return the title in one line, as short as GitHub shows it."""
        evidence = self.evidence
        where = ", ".join(filter(None, (evidence.triton, evidence.target)))
        name = evidence.function
        if evidence.kind == "wrong":
            change = evidence.change or "changes the result"
            text = f"{self._who} {change}{' of a kernel' if change == 'changes the result' else ''}"
        elif evidence.kind == "crash":
            # A fatal error keeps the names in it; an assertion is shorter without its function.
            fatal = evidence.failure is not None and evidence.failure.kind == "fatal error"
            what = (fatal and failure.message(evidence.log)) or evidence.observed
            text = ": ".join(filter(None, (evidence.failed_in, what)))
        else:
            text = ": ".join(filter(None, (name, evidence.observed)))
        plain = " ".join(self._plain(text).split())
        rest = f" ({where})" if where else ""
        most = self._limits["title"] - len(rest)
        return (plain if len(plain) <= most else f"{plain[: most - 1].rstrip()}…") + rest

    @property
    def _who(self) -> str:
        """The pass that changes the result, or those of which one does."""
        suspects = self.evidence.suspects
        if len(suspects) <= _FEW:
            return f"{'one of ' if len(suspects) > 1 else ''}{', '.join(suspects) or 'a pass'}"
        # All of them would be cut off, and the last one alone is what is not known.
        return f"one of {len(suspects)} passes from {suspects[0]} to {suspects[-1]}"

    def _files(self) -> dict[str, str]:
        """Return the files beside the body."""
        beside: dict[str, str] = {}
        for script in self.scripts:
            beside |= {script.name: script.text, **script.helper}
        # The source is there even where no script can be made of it: somebody can read it.
        kernel = self.evidence.kernel
        if kernel and kernel.name not in beside:
            beside[kernel.name] = self.hide.in_place(kernel.text)
        if self._log_text:
            beside[LOG] = self._log_text + "\n"
        return beside

    @property
    def _log_text(self) -> str:
        """The compiler's output: of Triton alone, if that was run here; else of the recorded compile."""
        # A reader sees the traceback of the script, and none of this tool's own worker.
        own = (row.printed for row in self.scripts if row.status == "shown" and self.evidence.kind == "crash")
        return self._plain(next(own, "") or self.evidence.log)

    def _plain(self, text: str) -> str:
        """Return a foreign text without secrets, names, folders and control characters."""
        # The patterns that hide something are no faster than those that find a failure.
        return redact.printable(self.hide(failure.anonymous(failure.searched(text)))).strip()

    def _span(self, text: str) -> str:
        return code_span(" ".join(self._plain(text).split()))

    def _body(self, beside: Mapping[str, str], inline: set[str]) -> str:
        """Return the body, with the text of these files."""
        contents: dict[str, Callable[[], Iterator[str]]] = {
            "description": lambda: self._description(beside, inline),
            "environment": self._environment,
            "log": lambda: self._log(inline),
        }
        parts = []
        for row in self._form["fields"]:
            paragraphs = list(contents[row["content"]]())
            if paragraphs or row["required"]:
                parts += [f"### {row['label']}"] if row["label"] else []
                parts += paragraphs or ["Not known."]
        return "\n\n".join(parts) + "\n"

    def _description(self, beside: Mapping[str, str], inline: set[str]) -> Iterator[str]:
        yield self._summary()
        for script in self.scripts:
            yield from self._reproduction(script, beside, inline)
        kernel = self.evidence.kernel
        if kernel and kernel.name not in {script.name for script in self.scripts}:
            yield "The kernel, of which no script for Triton alone could be made:"
            yield _shown(kernel.name, beside, inline)
        yield f"**Expected:** {self._expected()}"
        yield from self._actual(inline)
        yield from self._blame()
        yield from self._history()
        if own := self._own_command():
            yield f"With tritonsmith: {code_span(own)}"

    def _summary(self) -> str:
        evidence = self.evidence
        kernel = f"kernel {self._span(evidence.function)}" if evidence.function else "kernel"
        target = f" for {self._span(evidence.target)}" if evidence.target else ""
        by = f" with Triton {self._span(evidence.triton)}" if evidence.triton else ""
        if evidence.kind == "crash":
            place = f": it fails in {self._span(evidence.failed_in)}" if evidence.failed_in else ""
            text = f"The {kernel} does not compile{target}{by}{place}."
            if evidence.rejected:
                text += f" Triton's front end rejects the program: {self._span(evidence.rejected)}."
                # Nothing but the word of whoever posts it makes this a bug.
                believed = self.owner != "pytorch" and not _accepted_by(evidence)
                text += " The reporter believes that it should be accepted." if believed else ""
        elif evidence.kind == "wrong":
            what = self._span(f"{self._who} {evidence.change}" if evidence.change else evidence.observed)
            text = f"A pass changes what the {kernel} computes{target}{by}: {what}."
        else:
            text = f"The code of the {kernel} is worse{target}: {self._span(evidence.observed)}."
        # A command of a triage or a bisect, which has no target, may launch kernels.
        return f"{text} No GPU is needed to see it." if evidence.target else text

    def _reproduction(self, script: Script, beside: Mapping[str, str], inline: set[str]) -> Iterator[str]:
        release = self.evidence.triton
        public = _RELEASE.fullmatch(release) and "+" not in release
        install = [f"pip install triton=={release}"] if public else []
        if script.name == IR:
            yield "The pass alone, with `triton-opt` of a build:"
            yield fenced(script.shell, "sh")
        elif script.name == LLIR:
            yield "LLVM's code generator alone, as Triton calls it:"
            yield fenced(script.shell, "sh")
        else:
            what = "To compile the kernel" if self.evidence.kind == "wrong" else "To reproduce"
            yield f"{what}, with Triton and nothing else:"
            yield fenced("\n".join((*install, script.shell)), "sh")
        yield self._ran(script)
        # All that a reader needs to repeat it is in the text: nobody downloads attachments of strangers.
        for name in (script.name, *script.helper):
            yield _shown(name, beside, inline)
        if self.evidence.kind == "regression" and script.printed:
            yield fenced(script.printed[-self._limits["output"] :])

    def _ran(self, script: Script) -> str:
        """Tell whether the command was run before the issue was written, and what came of it."""
        if script.outcome == _NOT_RUN:
            return f"(It was not run: `{_NOT_RUN}`.)"
        if script.status == "not run":
            return f"This command was **not run** before posting: {script.outcome}."
        how = "It was run before posting"
        if script.helper:
            how = f"With a wheel, `python {RUN_IR} {IR}` runs the same passes. That was run before posting"
        more = " So it does **not** show the bug as described." if script.status == "other" else ""
        return f"{how}: {script.outcome}.{more}"

    def _expected(self) -> str:
        fine = next(
            (
                version
                for version, verdict, _ in self.evidence.tested
                if verdict in ("good", "gone") and _RELEASE.fullmatch(version)
            ),
            "",
        )
        also = f", as with {fine}" if fine else ""
        kinds = {
            "crash": f"it compiles{also}.",
            "wrong": "passes leave what the kernel computes as it is.",
            "regression": f"code that is not worse{also}.",
        }
        return kinds[self.evidence.kind]

    def _actual(self, inline: set[str]) -> Iterator[str]:
        evidence = self.evidence
        if evidence.kind == "crash":
            yield "**Actual:**"
            yield fenced(self._plain(failure.message(evidence.log) or evidence.observed))
            if "log" not in {row["content"] for row in self._form["fields"]}:
                yield from self._log(inline)
        details = [self._plain(line) for line in evidence.details]
        if details:
            heads = {"crash": "What was seen:", "wrong": "**Actual**, of the IR that was run on a CPU:"}
            yield heads.get(evidence.kind, "**Actual:**")
            yield fenced("\n".join(details))

    def _log(self, inline: set[str]) -> Iterator[str]:
        # The module that a compiler prints after an assertion is of no use: the kernel is above.
        log = "\n".join(issue_folder.without_ir(self._log_text))
        if not log or log == self._plain(failure.message(self.evidence.log)):
            return  # it is there already
        most = self._limits["log"]
        if LOG not in inline:
            most //= 2
        cut = log if len(log) <= most else f"{log[:most]}\n... ({LOG} has more of it)"
        yield _details("the compiler's output", fenced(cut))

    def _blame(self) -> Iterator[str]:
        # A front end that rejects a program has said all about that in the summary.
        if self.evidence.rejected and not self.evidence.blamed:
            return
        proven = [row for row in self.evidence.blamed if row.proven]
        rows = [
            f"- {self._span(row.words)}: {self._sentence(row.evidence)}"
            for row in proven or self.evidence.blamed
        ]
        if not rows:
            yield "The faulty component is not known."
        elif self.evidence.kind == "wrong" and not proven:
            yield "\n".join(
                ("**To blame** is one of several passes, as IR between them was not run:", "", *rows)
            )
        elif proven:
            yield "\n".join(("**To blame:**", "", *rows))
        else:
            what = "The faulty component is not known. The message only shows which one gave up:"
            yield "\n".join((what, "", *rows))

    def _sentence(self, text: str) -> str:
        """Return a sentence, of which what a compiler has said is code."""
        head, colon, message = text.partition(": ")
        return f"{head}: {self._span(message)}" if colon else head

    def _history(self) -> Iterator[str]:
        if self.evidence.culprit:
            yield "\n".join(self._culprit(self.evidence.culprit))
        # A triage tries twenty changes, most of which end in the same way.
        groups: dict[tuple[str, str], list[str]] = {}
        for name, verdict, figures in self.evidence.tested:
            groups.setdefault((verdict, figures), []).append(name)
        rows = [(", ".join(names), *key) for key, names in groups.items()][: self._limits["rows"]]
        if rows:
            lines = ["| tested | verdict | seen |", "|---|---|---|"]
            yield "\n".join((*lines, *(f"| {' | '.join(map(self._cell, row))} |" for row in rows)))

    def _cell(self, text: str) -> str:
        # In a table a bar ends the cell, even inside of a code span.
        return self._span(text).replace("|", "\\|") if text else ""

    def _culprit(self, culprit: BisectCulprit) -> Iterator[str]:
        what = "Fixed" if culprit.fix else "Came"
        last, first = (culprit.bad, culprit.good) if culprit.fix else (culprit.good, culprit.bad)
        if len(culprit.suspects) > 1:
            span = f"between {self._span(last)} and {self._span(first)}"
            yield f"**{what}** {span}; of those in between, not all could be tested."
        elif _COMMIT.fullmatch(culprit.commit):
            date = _DATE.match(culprit.date)
            on = f", {date[0]}" if date else ""
            link = f"[{culprit.commit[:_SHORT]}]({_UPSTREAM}/commit/{culprit.commit})"
            pull = f", {_UPSTREAM}/pull/{culprit.pull}" if culprit.pull else ""
            yield f"**{what} with** {link}, {self._span(culprit.subject)}{on}{pull}."
        else:
            yield f"**{what}** between {self._span(last)} and {self._span(first)}."
        if _COMMIT.fullmatch(culprit.llvm):
            yield f"Behind it is LLVM's [{culprit.llvm[:_SHORT]}]({_LLVM}/commit/{culprit.llvm})."
        yield from (f"- {self._span(note)}" for note in culprit.notes)

    def _own_command(self) -> str:
        """Return the command of this tool that shows it, on the file of the issue; empty if there is none."""
        kernel, evidence = self.evidence.kernel, self.evidence
        if kernel is None or kernel.request is None:
            return ""
        words = replace(kernel.request, file=Path(kernel.name)).flags(triton=evidence.triton)
        task = {
            "crash": "kernel.compile",
            "wrong": "passes.check",
            "regression": "kernel.compile --resources",
        }
        return f"tritonsmith {task[evidence.kind]} {words}"

    def _environment(self) -> Iterator[str]:
        evidence = self.evidence
        backend = "GPU target (compiled for; none was used)"
        rows = {
            "Triton": evidence.triton,
            "LLVM in it": evidence.llvm,
            "ptxas": evidence.ptxas,
            backend: evidence.target,
            "Python": evidence.python,
            "system": evidence.system,
        }
        lines = [f"- {name}: {self._span(value)}" for name, value in rows.items() if value]
        if self.by:
            by = self._span(f"Python {self.by}, {issue_folder.system()}")
            lines.append(f"- the commands above were run by: {by}")
        yield "\n".join(lines)

    def _unknown(self) -> Iterator[Unknown]:
        """Yield what is left out, and the commands that find it out."""
        evidence, kernel = self.evidence, self.evidence.kernel
        words = shlex.split(kernel.request.flags()) if kernel and kernel.request else list(_ANY)
        triton = evidence.triton
        when = {"wrong": "wrong", "regression": _limit_of(evidence)}.get(evidence.kind, "")
        dump = command("passes.dump", *words, triton=triton, out="DUMP")
        ways = {
            "crash": f"{dump}, then invoke passes.isolate DUMP --reduce",
            "wrong": command("passes.check", *words, triton=triton, out="DUMP"),
            "regression": command("blame", *words, from_="A", to="B"),
        }
        if any(line.startswith("blame: ") for line in evidence.details):
            ways["regression"] = "blame has not decided it"
        proven = any(row.proven for row in evidence.blamed)
        # What fails behind Triton's passes has no pass that could be run alone.
        behind = any(row.owner != "triton" for row in evidence.blamed)
        ways |= {"crash": "a message alone does not show it"} if behind else {}
        several = len(evidence.suspects) > 1
        ways |= {"wrong": "passes.check could not run the IR between several passes"} if several else {}
        missing = {
            Unknown(_THE_KERNEL, "--with a folder of kernel.compile, or KERNEL.reduced.py"): not kernel,
            Unknown("a smaller kernel", command("reduce", *words, triton=triton, when=when)): kernel
            and not kernel.alone,
            Unknown(
                "the version or commit that brought it",
                command("bisect --kernel", *words, good="A", bad=triton or "B", when=when),
            ): not evidence.culprit,
            Unknown("the component that is to blame", ways[evidence.kind]): not proven
            and not evidence.rejected,
            Unknown("the pass alone, for triton-opt", ways[evidence.kind]): not (
                evidence.ir or evidence.rejected
            )
            and (several or (evidence.kind == "crash" and not behind)),
            Unknown("the commit of LLVM"): not evidence.llvm,
            Unknown("the version of Triton"): not evidence.triton,
            Unknown("the version of Python"): not evidence.python and not self.by,
            Unknown("the version of ptxas"): not evidence.ptxas
            and evidence.kind == "regression"
            and evidence.target.startswith("cuda"),
            **{
                Unknown(f"whether `{script.shell}` shows it", script.outcome): script.status == "not run"
                for script in self.scripts
            },
        }
        yield from (row for row, is_missing in missing.items() if is_missing)


def _limit_of(evidence: BugEvidence) -> str:
    """Return the limit that is broken, for `--when` of a single compile."""
    before = _CHANGED.search(evidence.observed)
    # A signed limit compares with another Triton, and `blame` has the metric alone.
    if before and (not re.search(r"[<>=]", evidence.metric) or re.search(r"[<>=][+-]", evidence.metric)):
        return f"{before['metric']}>{before['value']}"
    return evidence.metric or "LIMIT"


def _shown(name: str, beside: Mapping[str, str], inline: set[str]) -> str:
    """Return the text of a file, folded unless it is short; or where it is."""
    if name not in inline:
        return f"{code_span(name)} is attached: {len(beside[name]):,} characters."
    text = beside[name]
    block = fenced(text, _LANGUAGES.get(Path(name).suffix, ""))
    short = len(text.splitlines()) <= configs.load("issue-forms")["limits"]["open"]
    return f"{code_span(name)}:\n\n{block}" if short else _details(name, block)


def _details(head: str, text: str) -> str:
    return f"<details><summary>{html.escape(head, quote=False)}</summary>\n\n{text}\n\n</details>"


def plan(issue: Issue, out: Path) -> Plan:
    """Plan the files of an issue.

    Raises:
        UsageError: see `require_new`.
    """
    require_new(out)
    known = {BODY, TITLE, *issue.files}
    texts = {BODY: issue.body, TITLE: f"{issue.title}\n", **issue.files}
    steps = [Write(out / name, texts[name], phase="issue") for name in (*sorted(known - {BODY}), BODY)]
    return Plan("issue", (MakeDir(out, phase="issue"), *steps))


def require_new(out: Path) -> None:
    """Require a folder that does not exist yet, or is empty.

    Raises:
        UsageError: it has files, or is one.
    """
    # An issue is there to be edited before it is posted, so one of an earlier run is the user's work.
    if out.exists() and not (out.is_dir() and next(out.iterdir(), None) is None):
        hints = ["--out DIR: a new or an empty folder", f"or remove {out}"]
        raise UsageError("the folder of the issue exists, and is not empty", where=out, hints=hints)


def table(issue: Issue) -> Grid:
    """Return the commands that show the bug, and what came of running them."""
    rows = [[script.shell, script.status, script.outcome] for script in issue.scripts]
    return tables.plain(issue.title, ["command", "status", "outcome"], rows)


def lines(issue: Issue, out: Path) -> Iterator[str]:
    """Yield where the issue is, what is left out, and what to attach by hand."""
    yield f"{out / BODY}: {len(issue.body):,} characters, for {issue.repository}"
    for row in issue.unknown:
        yield f"  left out: {row.what}" + (f": {typed(row.hint)}" if row.hint else "")
    for name in issue.attachments:
        yield f"  not in the body: {out / name}: drop it into the form, or `gh gist create` it"
    kernel = (
        "" if any(row.what == _THE_KERNEL for row in issue.unknown) else ": it has the source of the kernel"
    )
    yield f"Read it before you post it{kernel}. Nothing was posted."


def as_json(issue: Issue, out: Path) -> dict[str, Any]:
    """Return the issue as JSON data."""
    return {
        "schema": 1,
        "folder": str(out),
        "repository": issue.repository,
        "title": issue.title,
        "files": [BODY, TITLE, *issue.files],
        "attachments": list(issue.attachments),
        "commands": [
            {"command": row.shell, "status": row.status, "outcome": row.outcome} for row in issue.scripts
        ],
        "unknown": [{"what": row.what, "hint": row.hint or None} for row in issue.unknown],
        "post": issue.command(out),
    }
