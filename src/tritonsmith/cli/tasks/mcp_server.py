"""The server of `mcp`: jobs that run commands, and the texts and files that can be read as resources.

Standard output belongs to the protocol. Commands run in forks of processes of their own (`ForkServer`), which
end with the server, even if that is killed; their output goes to a file.
"""

from __future__ import annotations

import os
import shlex
import signal
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qs, quote

import anyio
import anyio.to_thread
from jsonschema import Draft202012Validator
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

from tritonsmith import __version__
from tritonsmith.cli.tasks import mcp
from tritonsmith.cli.tasks.mcp import AgentTool, Json
from tritonsmith.cli.tasks.task import as_exit
from tritonsmith.compiler import manifest
from tritonsmith.compiler.dump import index
from tritonsmith.core import redact, untrusted
from tritonsmith.core.command_line import command
from tritonsmith.core.errors import EXIT_INTERRUPTED, SmithError, UsageError, nearest
from tritonsmith.core.plan import files
from tritonsmith.core.plan.fork_server import ForkServer
from tritonsmith.core.plan.runner import NO_INSTALL
from tritonsmith.core.ui import console

_TASK = ("tritonsmith.core.ui.console:begin_progress", "tritonsmith.cli.program:main")
_SCHEME = "tritonsmith"
_LOOK = 0.5  # seconds between two looks at the progress of a call that a client waits for
_LINES = 1000  # of standard error that a result may have, the last ones
_WIDTH = 300  # characters of a line of progress
_EVIDENCE = "triage.json"
_LISTED = (manifest.FILE, index.FILE, _EVIDENCE)


def serve(offered: Sequence[AgentTool], *, may_install: bool) -> None:
    """Serve the tools over standard input and output, until the client closes them.

    Args:
        offered: the tools.
        may_install: whether a tool may install the Triton that it needs.
    """
    with ExitStack() as held:
        scratch = held.enter_context(files.scratch("mcp-"))
        anyio.run(_Session(offered, scratch, held, may_install=may_install).run)


@dataclass(eq=False)
class _Job:
    """A run of a command.

    Attributes:
        number: of the job.
        tool: the tool.
        words: its command line.
        stop: set to stop it.
        done: set at its end.
        progress: its last lines.
        count: number of all lines of progress.
        result: of the run, once it is done.
        began: when it began, by the monotonic clock.
    """

    number: int
    tool: AgentTool
    words: list[str]
    stop: threading.Event = field(default_factory=threading.Event)
    done: anyio.Event = field(default_factory=anyio.Event)
    progress: deque[str] = field(default_factory=lambda: deque(maxlen=mcp.limits().progress))
    count: int = 0
    result: dict[str, Json] | None = None
    began: float = field(default_factory=time.monotonic)

    @property
    def command(self) -> str:
        """The command line, for a shell."""
        return shlex.join(["tritonsmith", *self.words])

    def note(self, line: str) -> None:
        """Add a line of progress."""
        self.progress.append(line[:_WIDTH])
        self.count += 1

    def shown(self) -> dict[str, Json]:
        """Return the result; that it still runs, if it does."""
        if self.result is not None:
            return self.result
        seconds = round(time.monotonic() - self.began, 1)
        return {
            "verdict": "running",
            "job": self.number,
            "seconds": seconds,
            "progress": list(self.progress),
            "command": self.command,
        }

    def waiting(self) -> None:
        """Stop the run if that is asked for.

        Raises:
            KeyboardInterrupt: it is.
        """
        if self.stop.is_set():
            raise KeyboardInterrupt


class _Resources:
    """The texts that were cut, and the files that tools have written. Nothing else has a URI.

    Args:
        scratch: the folder for texts.
        limits: of texts and pages.
    """

    def __init__(self, scratch: Path, limits: mcp.Limits) -> None:
        self._scratch, self._limits = scratch, limits
        self._files: dict[str, tuple[Path, str]] = {}  # the folder, and the path in it
        self._texts: deque[str] = deque()
        self._numbers: dict[Path, int] = {}
        self._count = 0

    def keep(self, text: str) -> str:
        """Store a text; return its URI."""
        self._count += 1
        uri, name = f"{_SCHEME}://text/{self._count}", f"text-{self._count}"
        # Half of a surrogate pair, as JSON may have, is no UTF-8.
        files.write(self._scratch / name, text.encode("utf-8", "replace"))
        self._files[uri] = self._scratch, name
        self._texts.append(uri)
        # A session may last for days. What a client has not read by then, it will not read.
        if len(self._texts) > self._limits.texts:
            folder, name = self._files.pop(self._texts.popleft())
            files.remove([folder / name])
        return uri

    def add(self, path: Path) -> list[Json]:
        """Register what a tool has written; return the main files, as a result lists them.

        Args:
            path: a folder of compiled kernels, of a dump or of an experiment; or a page.
        """
        if path.suffix == ".html":
            folder, names = path.parent, [path.name]
        else:
            # Only what our own list of the folder names: it may be anybody's folder, with other files in it.
            folder, names = path, [name for name in _LISTED if untrusted.is_file(path / name)]
            if manifest.FILE in names:
                points = manifest.read(path).points
                names += [stage.path for point in points for stage in point.stages.values()]
            if index.FILE in names:
                names += [dump.path for dump in index.read(path).dumps]
        # The same folder has the same number: a client may have kept the URI.
        number = self._numbers.setdefault(path, len(self._numbers) + 1)
        uris = {f"{_SCHEME}://output/{number}/{quote(name)}": (folder, name) for name in names}
        self._files |= uris
        return [
            {"uri": uri, "path": str(folder / name)} for uri, (folder, name) in uris.items() if _is_main(name)
        ]

    def listed(self) -> list[types.Resource]:
        """Return the resources that a client lists: manifests, indices and pages, the newest first."""
        return [
            types.Resource(
                uri=uri,
                name=Path(name).name,
                description=str(folder / name),
                mime_type="text/html" if name.endswith(".html") else "application/json",
            )
            for uri, (folder, name) in reversed(self._files.items())
            if _is_main(name)
        ]

    def page(self, uri: str, number: int | None) -> tuple[str, int, int]:
        """Return one page of a text or a file, its number, and the number of pages.

        Args:
            uri: the URI, with or without `?page=`.
            number: the page, from 1; None for the one in the URI, or else the first.

        Raises:
            SmithError: nothing has this URI, it has no such page, or it names another one than `number`.
        """
        bare, query = _split(uri)
        if None not in (number, query) and number != query:
            raise UsageError(f"page={number} and ?page={query} contradict each other", hints=["give one"])
        number = next((each for each in (number, query) if each is not None), 1)
        every = mcp.pages(self._read(bare), self._limits.characters)
        if not 1 <= number <= len(every):
            pages = "1 page" if len(every) == 1 else f"{len(every)} pages"
            raise UsageError(f"{bare} has {pages}, and no page {number}", hints=[f"{bare}?page={len(every)}"])
        return every[number - 1], number, len(every)

    def whole(self, uri: str) -> str:
        """Return a whole text, or the page that `?page=` names.

        Raises:
            SmithError: nothing has this URI, or it is too long.
        """
        bare, number = _split(uri)
        if number is not None:
            return self.page(bare, number)[0]
        text = self._read(bare)
        # A client puts what it reads into a context, or shows it: neither bears a dump of LLVM.
        if len(text) > self._limits.resource:
            raise UsageError(f"{bare} has {len(text):,} characters", hints=[f"page by page: {bare}?page=1"])
        return text

    def _read(self, uri: str) -> str:
        # No URI is ever made into a path: one that was not given out leads nowhere.
        if uri not in self._files:
            hints = ["URIs are in `cut` and `outputs` of results"]
            raise UsageError("no tool has written a resource with this URI", where=uri[:_WIDTH], hints=hints)
        folder, name = self._files[uri]
        path = folder / name
        try:
            # Checked at each read: the file may have become a link since the tool wrote it.
            return untrusted.read_bytes(untrusted.path_in(folder, name)).decode("utf-8")
        except UnicodeDecodeError:
            raise UsageError("this file is binary", where=path) from None
        except untrusted.UnreadableError as error:
            raise SmithError("this resource is outside its folder", where=path, why=str(error)) from error
        except OSError as error:
            raise SmithError("cannot read this resource", where=path, why=error.strerror) from error


def _is_main(name: str) -> bool:
    """Return whether a file is one that results and the client's list name: a manifest, an index, a page."""
    return Path(name).name in _LISTED or name.endswith(".html")


def _split(uri: str) -> tuple[str, int | None]:
    """Return a URI without its query, and the page that this names; None if it names none.

    Raises:
        UsageError: the page is not a number.
    """
    bare, _, query = uri.partition("?")
    values = parse_qs(query, keep_blank_values=True).get("page")
    if values is None:
        return bare, None
    if not values[0].isascii() or not values[0].isdigit() or len(values[0]) > len(str(2**31)):
        raise UsageError(f"not a page: {values[0][:20]!r}", hints=[f"{bare}?page=2"])
    return bare, int(values[0])


class _Session:
    """A server and all that it has begun.

    Args:
        offered: the tools.
        scratch: a folder for outputs and texts.
        held: what is closed when the process ends at a signal.
        may_install: whether a tool may install what it needs.
    """

    def __init__(
        self, offered: Sequence[AgentTool], scratch: Path, held: ExitStack, *, may_install: bool
    ) -> None:
        self._tools, self._own_tools = {tool.name: tool for tool in offered}, mcp.own_tools()
        self._scratch, self._held, self._limits = scratch, held, mcp.limits()
        self._environ = {} if may_install else {NO_INSTALL: "1"}
        self._resources = _Resources(scratch, self._limits)
        self._jobs: dict[int, _Job] = {}
        self._idle: list[ForkServer] = []
        self._group: anyio.abc.TaskGroup | None = None

    async def run(self) -> None:
        """Serve until the client closes the connection, or a signal comes; then nothing is left running."""
        server: Server[dict[str, object]] = Server(
            "tritonsmith",
            version=__version__,
            instructions=mcp.instructions(),
            on_list_tools=self._list_tools,
            on_call_tool=self._call,
            on_list_resources=self._list_resources,
            on_list_resource_templates=self._list_templates,
            on_read_resource=self._read,
        )
        # Jobs are tasks of this group, and not of the requests that began them: a request may end before.
        async with anyio.create_task_group() as self._group:
            self._group.start_soon(self._end_at_signal)
            async with stdio_server() as (incoming, outgoing):
                await server.run(incoming, outgoing, server.create_initialization_options())
            await self._end()
            self._group.cancel_scope.cancel()

    async def _end(self) -> None:
        """Stop all jobs, and the processes that run them."""
        running = [job for job in self._jobs.values() if job.result is None]
        for job in running:
            job.stop.set()
        # All are asked before the first is waited for: each may take seconds to stop.
        for job in running:
            await job.done.wait()
        for server in self._idle:
            server.close()

    async def _end_at_signal(self) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            async for _ in signals:
                await self._end()
                self._held.close()
                # The thread that reads standard input cannot be interrupted, and Python would wait for it.
                os._exit(EXIT_INTERRUPTED)

    async def _list_tools(
        self, _context: ServerRequestContext[dict[str, object]], _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        listed = [
            types.Tool(
                name=tool.name,
                description=tool.purpose,
                input_schema=tool.schema,
                output_schema=mcp.result_schema(),
                annotations=types.ToolAnnotations(
                    read_only_hint=tool.effect == "read",
                    destructive_hint=tool.effect == "delete",
                    open_world_hint=tool.effect == "install",
                ),
            )
            for tool in self._tools.values()
        ]
        own = [
            types.Tool(
                name=tool.name,
                description=tool.purpose,
                input_schema=tool.schema,
                annotations=types.ToolAnnotations(
                    read_only_hint=tool.read_only, destructive_hint=False, open_world_hint=False
                ),
            )
            for tool in self._own_tools.values()
        ]
        return types.ListToolsResult(tools=[*listed, *own])

    async def _list_resources(
        self, _context: ServerRequestContext[dict[str, object]], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        return types.ListResourcesResult(resources=self._resources.listed())

    async def _list_templates(
        self, _context: ServerRequestContext[dict[str, object]], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        texts = types.ResourceTemplate(
            uri_template=f"{_SCHEME}://text/{{number}}{{?page}}",
            name="text",
            description="a text that a result has cut",
        )
        outputs = types.ResourceTemplate(
            uri_template=f"{_SCHEME}://output/{{number}}/{{+path}}{{?page}}",
            name="output",
            description="a file that a tool wrote, by its path in manifest.json or index.json",
        )
        return types.ListResourceTemplatesResult(resource_templates=[texts, outputs])

    async def _read(
        self, _context: ServerRequestContext[dict[str, object]], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        try:
            text = self._resources.whole(uri)
        except SmithError as error:
            raise MCPError(types.INVALID_PARAMS, console.typed(str(error))) from None
        return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=text)])

    async def _call(
        self, context: ServerRequestContext[dict[str, object]], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments: Mapping[str, Json] = params.arguments or {}
        try:
            if params.name in self._own_tools:
                return _result(await self._own(context, params.name, arguments))
            tool = self._tool(params.name)
            _check(tool.name, tool.schema, arguments)
            job = self._begin(tool, tool.words(arguments))
        except SmithError as error:
            # An error of the tool and not of the protocol: an agent reads it, and calls again.
            return _result(_refused(params.name, error))
        try:
            await self._wait(context, job, 0 if tool.job else self._limits.patience)
        except anyio.get_cancelled_exc_class():
            # Not waited for: the thread stops the processes, and a cancelled request gets no answer.
            job.stop.set()
            raise
        return _result(job.shown())

    def _tool(self, name: str) -> AgentTool:
        """Return an offered tool.

        Raises:
            MCPError: there is no such tool.
            UsageError: the user has not allowed it.
        """
        if tool := self._tools.get(name):
            return tool
        # Not listed, but an agent may know it from the page or from the skill.
        if tool := next((tool for tool in mcp.declared() if tool.name == name), None):
            what = f"{name} would {tool.effect}, and the user has not allowed that"
            hints = [f"ask the user to start the server with `{command('mcp', allow=tool.allowance)}`"]
            raise UsageError(what, hints=hints)
        near = nearest(name[:_WIDTH], [*self._tools, *self._own_tools])
        meant = f": did you mean {near}?" if near else ""
        raise MCPError(types.INVALID_PARAMS, f"unknown tool {name[:100]!r}{meant}")

    def _begin(self, tool: AgentTool, words: list[str]) -> _Job:
        """Begin a job.

        Raises:
            UsageError: too many are running.
        """
        running = [job for job in self._jobs.values() if job.result is None]
        if len(running) >= self._limits.calls:
            names = ", ".join(f"{job.number} ({job.tool.name})" for job in running)
            hints = ["wait for one by job_status, or stop one by job_cancel"]
            raise UsageError(f"{len(running)} jobs are running: {names}", hints=hints)
        job = _Job(len(self._jobs) + 1, tool, words)
        self._jobs[job.number] = job
        assert self._group is not None  # noqa: S101 - for the type checker
        self._group.start_soon(self._carry_out, job)
        return job

    async def _wait(
        self, context: ServerRequestContext[dict[str, object]], job: _Job, seconds: float
    ) -> None:
        """Wait for the end of a job, and send its progress to a client that wants it."""
        sent = job.count
        with anyio.move_on_after(seconds):
            while not job.done.is_set():
                with anyio.move_on_after(_LOOK):
                    await job.done.wait()
                # Several lines within one look are one notification: a client shows the last one anyway.
                if job.count > sent:
                    sent = job.count
                    await context.session.report_progress(sent, message=job.progress[-1])

    async def _carry_out(self, job: _Job) -> None:
        # Shielded: at the end of the session the thread is asked to stop, and has processes to stop itself.
        with anyio.CancelScope(shield=True):
            # A process that has run a command starts the next one at once, as everything is imported.
            server = self._idle.pop() if self._idle else ForkServer(*_TASK, environ=self._environ)
            try:
                result = await anyio.to_thread.run_sync(self._outcome, job, server)
                self._idle.append(server)
                job.result = self._cut(job, result)
            except Exception as error:  # noqa: BLE001 - whatever it is, the other calls go on
                server.close()
                job.result = {**_failed(job.tool.name, str(as_exit(error))), "job": job.number}
            job.done.set()

    def _outcome(self, job: _Job, server: ForkServer) -> dict[str, Json]:
        """Run the command of a job, in a thread; return its result, before that is cut.

        Args:
            job: the job.
            server: the process that runs it, which runs no other job meanwhile.

        Raises:
            SmithError: the process that runs it has died.
        """
        path, errors = self._scratch / f"answer-{job.number}", deque[str](maxlen=_LINES)

        def on_line(line: str) -> None:
            text = console.parse_record(line).get("progress")
            # Notes and warnings are lines of progress, too, as they come while the command runs.
            if text is None:
                errors.append(line)
            job.note(line if text is None else text)

        code = EXIT_INTERRUPTED
        with files.create(path) as answer:
            try:
                code = server.run(("tritonsmith", *job.words), on_line, job.waiting, answer)
            except KeyboardInterrupt:
                errors.append("note: stopped; the same call goes on where an experiment was stopped")
        printed = untrusted.read_bytes(path, untrusted.OURS).decode("utf-8", "replace")
        files.remove([path])
        return mcp.outcome(job.tool, code, printed, tuple(errors))

    def _cut(self, job: _Job, result: dict[str, Json]) -> dict[str, Json]:
        """Return a result as a client gets it: with what was written, and cut to what a context bears."""
        outputs = [
            row for path in _written(job.tool, result.get("answer")) for row in self._resources.add(path)
        ]
        seconds = round(time.monotonic() - job.began, 1)
        about: dict[str, Json] = {
            "job": job.number,
            "seconds": seconds,
            "command": redact.hidden(job.command),
        }
        if outputs:
            about["outputs"] = outputs
        return self._fit({**result, **about}, job.tool.characters)

    def _fit(self, result: dict[str, Json], characters: int = 0) -> dict[str, Json]:
        """Return a result cut down to this size, or to the limit of all tools, and what was cut."""
        cutter = mcp.ResultCutter(self._resources.keep)
        cut = cutter.fit(result, characters or self._limits.characters)
        assert isinstance(cut, dict)  # noqa: S101 - for the type checker
        return {**cut, "cut": cutter.cuts} if cutter.cuts else cut

    async def _own(
        self, context: ServerRequestContext[dict[str, object]], name: str, arguments: Mapping[str, Json]
    ) -> dict[str, Json]:
        """Return the result of a tool that is no command.

        Raises:
            SmithError: the arguments are wrong.
        """
        _check(name, self._own_tools[name].schema, arguments)
        if name == "read":
            number = _number(arguments["page"]) if "page" in arguments else None
            text, page, count = self._resources.page(str(arguments["uri"]), number)
            return {"uri": arguments["uri"], "page": page, "pages": count, "text": text}
        if "job" not in arguments:
            return self._fit({"jobs": [_row(job) for job in reversed(self._jobs.values())]})
        job = self._jobs.get(_number(arguments["job"]))
        if job is None:
            hints = ["job_status without a job lists all"]
            raise UsageError(f"there is no job {arguments['job']}", hints=hints)
        if name == "job_cancel":
            job.stop.set()
            await job.done.wait()
        else:
            # Nor does a client wait longer for this answer than for any other.
            await self._wait(context, job, min(_number(arguments.get("wait")), self._limits.patience))
        return job.shown()


def _row(job: _Job) -> dict[str, Json]:
    shown = job.shown()
    return {"job": job.number, "tool": job.tool.name, "verdict": shown["verdict"], "command": job.command}


def _written(tool: AgentTool, answer: Json) -> list[Path]:
    """Return the folders and pages that a command has written, as its answer names them."""
    if not isinstance(answer, dict):
        return []
    # Of a kernels file, the answer has a list of kernels.
    kernels = answer.get("kernels")
    tables = [answer, *(kernels if isinstance(kernels, list) else [])]
    values = [table.get(key) for table in tables if isinstance(table, dict) for key in tool.outputs]
    return [Path(value) for value in values if isinstance(value, str)]


def _check(name: str, schema: Mapping[str, Json], arguments: Mapping[str, Json]) -> None:
    """Check arguments.

    Raises:
        UsageError: they do not fit the schema.
    """
    errors = sorted(Draft202012Validator(schema).iter_errors(arguments), key=lambda error: list(error.path))
    if errors:
        properties = schema["properties"]
        assert isinstance(properties, dict)  # noqa: S101 - for the type checker
        rows = [("/".join(map(str, error.path)), error.message) for error in errors]
        raise mcp.invalid(name, tuple(properties), rows)


def _number(value: Json, default: int = 0) -> int:
    """Return a whole number of JSON, which may be written as 1.0."""
    return int(value) if isinstance(value, int | float) else default


def _refused(name: str, error: SmithError) -> dict[str, Json]:
    return _failed(name, redact.hidden(console.typed(str(error))))


def _failed(name: str, message: str) -> dict[str, Json]:
    return {"verdict": "failed", "message": message.removeprefix("error: "), "command": name}


def _without_text(table: dict[str, Json]) -> dict[str, Json]:
    return {name: value for name, value in table.items() if name != "text"}


def _result(content: dict[str, Json]) -> types.CallToolResult:
    """Return a result for the protocol: structured, and as text for clients that show only that."""
    texts = [mcp.dumps(content)]
    answer = content.get("answer")
    # A text is easier to read as it is than in a JSON string: IR, or what was cut.
    if isinstance(text := content.get("text"), str):
        texts = [mcp.dumps(_without_text(content)), text]
    elif isinstance(answer, dict) and isinstance(text := answer.get("text"), str):
        texts = [mcp.dumps({**content, "answer": _without_text(answer)}), text]
    return types.CallToolResult(
        content=[types.TextContent(text=text) for text in texts],
        structured_content=content,
        is_error=content.get("verdict") == "failed",
    )
