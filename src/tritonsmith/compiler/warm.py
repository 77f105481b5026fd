"""Keep an interpreter with Triton running, to compile changing files many times without its start-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tritonsmith.compiler import call, manifest, points, run, source
from tritonsmith.compiler.interpreter import Interpreter, worker_variables
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.core.errors import SmithError
from tritonsmith.core.plan import files
from tritonsmith.worker.border import text_of
from tritonsmith.worker.messages import CompiledRow, CompileHead, ServedRow

_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}


class WarmCompiler:
    """A compiler for one request after the other; each is a fork of a process that has imported Triton.

    Args:
        where: the interpreter.
        folder: for the requests, the results and the caches; it must exist.
    """

    def __init__(self, where: Interpreter, folder: Path) -> None:
        self._where, self._folder = where, folder
        self._process: call.Conversation | None = None

    def compile(self, asked: CompileRequest, out: Path) -> Manifest | None:
        """Compile all points; return None if the kernel or the signature is refused.

        Args:
            asked: for a kernel whose head can be read from its file.
            out: folder of the outputs; existing files are overwritten.

        Raises:
            FactError: the process has ended.
        """
        try:
            kernel = source.find(source.read(asked.file), asked.kernel, asked.file)
            wanted = points.expand(asked, kernel) if kernel else ()
        except SmithError:
            return None
        if not wanted:
            return None
        files.make_folder(out)
        request, where = self._folder / "request.json", replace(self._where, jobs=1)
        content = run.worker_request(
            asked.file,
            asked.kernel,
            wanted,
            out,
            self._folder,
            where,
            keep=asked.stages,
            disassemble=asked.disassemble,
        )
        files.write(request, text_of(content))
        ended = self._ask(request)
        if ended.status != "ok":
            return None
        try:
            head, rows = call.headed_results(self._folder / "results.jsonl", CompileHead, CompiledRow)
        except call.UnansweredError:
            return None
        if len(rows) != len(wanted):
            return None
        return manifest.from_results(head, rows, out, asked.kernel, asked.file, wanted, asked.flags())

    def close(self) -> None:
        """Stop the process."""
        if self._process:
            self._process.close()
        self._process = None

    def _ask(self, request: Path) -> ServedRow:
        if self._process is None:
            change = {**dict(worker_variables(self._where)), **_QUIET}
            self._process = call.Conversation(
                self._where.python, "attend", str(request), folder=self._folder, change=change
            )
        self._process.say(str(request))
        return self._process.hear(ServedRow)
