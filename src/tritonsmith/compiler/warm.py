"""Keep an interpreter with Triton running, to compile changing files many times without its start-up."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from tritonsmith import worker
from tritonsmith.compiler import manifest, points, run, source
from tritonsmith.compiler.manifest import Manifest
from tritonsmith.compiler.request import CompileRequest
from tritonsmith.compiler.run import Toolchain
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.plan import files
from tritonsmith.core.plan.line_process import LineProcess

_QUIET = {"PYTHONDONTWRITEBYTECODE": "1"}


class WarmCompiler:
    """A compiler for one request after the other; each is a fork of a process that has imported Triton.

    Args:
        where: the toolchain.
        folder: for the requests, the results and the caches; it must exist.
    """

    def __init__(self, where: Toolchain, folder: Path) -> None:
        self._where, self._folder = where, folder
        self._process: LineProcess | None = None

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
        files.write(request, json.dumps(content))
        ended = self._ask(request)
        results = manifest.read_results(self._folder / "results.jsonl") if ended["status"] == "ok" else []
        if len(results) != len(wanted) + 1:
            return None
        return manifest.from_results(results, out, asked.kernel, asked.file, wanted, asked.flags())

    def close(self) -> None:
        """Stop the process."""
        if self._process:
            self._process.close()
        self._process = None

    def _ask(self, request: Path) -> dict[str, str]:
        if self._process is None:
            argv = (str(self._where.python), str(worker.FOLDER), "attend", str(request))
            self._process = LineProcess(
                argv,
                cwd=self._folder,
                change={**dict(run.worker_variables(self._where)), **_QUIET},
                errors=self._folder / "worker.log",
            )
        self._process.say(str(request))
        try:
            answer: dict[str, str] = json.loads(self._process.hear())
        except ValueError as error:
            raise FactError("a worker answered no JSON", where=self._folder / "worker.log") from error
        return answer
