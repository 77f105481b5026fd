"""`mcp` over stdio, by the client of the protocol's own SDK: tools, resources, jobs, cancelling, refusals."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import psutil
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import TextContent, TextResourceContents

from tests.integration.harness import SMITH, Smith
from tritonsmith.cli.tasks import mcp
from tritonsmith.compiler import up

pytestmark = pytest.mark.slow

SIGNATURE = "*fp32:16,*fp32:16,*fp32:16,i32,BLOCK=1024"
ADD: dict[str, Any] = {"kernel": "vector_add.py", "target": ["h100"], "signature": SIGNATURE}
FORK_SERVER = "tritonsmith.core.plan.fork_server"


class Agent:
    """A client as an agent has it: it calls a tool, and gets a structured result."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, name: str, *, wrong: bool = False, **arguments: Any) -> dict[str, Any]:
        """Call a tool, which succeeds or not, as `wrong` says."""
        answer = await self.client.call_tool(name, arguments)
        result: dict[str, Any] = answer.structured_content
        assert answer.is_error == wrong, result
        (first, *more) = [block for block in answer.content if isinstance(block, TextContent)]
        # For clients that show texts alone, these have all of it.
        shown = json.loads(first.text)
        if more:
            holder = shown["answer"] if "text" in result.get("answer", {}) else shown
            holder["text"] = more[0].text
        assert shown == result
        return result

    async def finished(self, job: int) -> dict[str, Any]:
        """Wait for the end of a job."""
        while True:
            answer = await self.client.call_tool("job_status", {"job": job, "wait": 20})
            result: dict[str, Any] = answer.structured_content
            assert answer.is_error == (result["verdict"] == "failed")
            if result["verdict"] != "running":
                return result


def serve(smith: Smith, script: Callable[[Agent], Awaitable[None]], *flags: str, **more: Any) -> None:
    """Let an agent work with a server of its own, and check that nothing is left of that."""
    parameters = StdioServerParameters(
        command=str(SMITH), args=["mcp", *flags], env=smith.environ, cwd=smith.cwd
    )

    async def run() -> None:
        # The server's standard error is a file: under pytest there is no terminal.
        with (smith.cwd / "mcp.err").open("a") as errors:
            async with Client(stdio_client(parameters, errlog=errors), **more) as client:
                await script(Agent(client))

    before = set(fork_servers())
    anyio.run(run)
    gone(lambda: set(fork_servers()) <= before)
    assert "Traceback" not in (smith.cwd / "mcp.err").read_text()


def fork_servers() -> list[int]:
    """The processes that run commands for servers, here and in other tests that run now."""
    found = []
    for process in psutil.process_iter():
        try:
            if FORK_SERVER in process.cmdline():
                found.append(process.pid)
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


def gone(ended: Callable[[], bool]) -> None:
    """Wait until something has ended, for as long as a hanging run may take."""
    until = time.monotonic() + 300
    while not ended():
        assert time.monotonic() < until, "it goes on"
        time.sleep(0.1)


@pytest.fixture
def place(with_wheel: Smith, tmp_path: Path) -> Smith:
    """A folder with a kernel, and a workspace with a released Triton."""
    smith = with_wheel.beside(tmp_path)
    for name in ("vector_add.py", "tiled_matmul.py"):
        source = Path(up.__file__).parent / "examples" / name
        (tmp_path / name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    return smith


def test_what_is_offered(place: Smith) -> None:
    async def look(agent: Agent) -> None:
        info = agent.client.server_info
        assert info
        assert info.name == "tritonsmith"
        assert agent.client.instructions == mcp.instructions()
        listed = (await agent.client.list_tools()).tools
        names = [tool.name for tool in listed]
        assert names == [tool.name for tool in mcp.tools()] + ["job_status", "job_cancel", "read"]
        hints = {tool.name: tool.annotations for tool in listed}
        assert all(hints[name] is not None for name in names)
        assert [name for name, hint in hints.items() if hint and hint.destructive_hint] == []
        assert [name for name, hint in hints.items() if hint and hint.read_only_hint][:2] == [
            "passes_list", "passes_show",
        ]  # fmt: skip
        assert (await agent.client.list_resources()).resources == []
        templates = (await agent.client.list_resource_templates()).resource_templates
        assert [template.name for template in templates] == ["text", "output"]

    serve(place, look)
    # A client of 2025 begins with another handshake.
    serve(place, look, mode="legacy")


def test_an_agent_looks_into_a_compile(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        compiled = await agent("kernel_compile", **ADD, out="out")
        assert compiled["verdict"] == "ok"
        # The same as --json, from the same program.
        again = json.loads(place("kernel.compile", "--json", *flags(ADD), "--out", "out").out)
        assert without_times(compiled["answer"]) == without_times(again)
        (output,) = compiled["outputs"]
        assert output["path"] == str(place.cwd / "out" / "manifest.json")
        assert json.loads(await text(agent, output["uri"]))["kernel"] == "vector_add"
        ptx = next(point for point in compiled["answer"]["points"])["stages"]["ptx"]["path"]
        assert ".entry vector_add" in await text(agent, output["uri"].replace("manifest.json", ptx))

        used = await agent("kernel_resources", **ADD)
        assert used["answer"]["rows"][0]["values"]["registers_per_thread"] > 0
        shown = await agent("kernel_show", **ADD, stage="ptx")
        assert ".entry vector_add" in shown["answer"]["text"]
        found = await agent("kernel_lint", **ADD, fail_on="any")
        assert found["verdict"] in ("ok", "findings")
        assert found["exit_code"] == (found["verdict"] == "findings")
        assert (await agent("kernel_bounds", **ADD))["answer"]["compiles"]
        same = await agent("kernel_check", **ADD, against="num_warps=8")
        assert same["answer"]["outcome"] == "same"

        dumped = await agent("passes_dump", **ADD, out="dump")
        folder = dumped["answer"]["folder"]
        assert folder == str(place.cwd / "dump")
        (left_out,) = dumped["cut"]
        assert left_out["at"] == "/answer/dumps"
        listed = (await agent("passes_list", folder="dump", changed=True))["answer"]["passes"]
        assert listed
        assert all(row["changed"] is not False for row in listed)
        # The rest of what was cut is a page away.
        first = await agent("read", uri=left_out["uri"])
        rows = first["text"]
        assert await agent("read", uri=f"{left_out['uri']}?page=1") == {
            **first,
            "uri": f"{left_out['uri']}?page=1",
        }
        for page in range(2, first["pages"] + 1):
            rows += (await agent("read", uri=left_out["uri"], page=page))["text"]
        assert [row["number"] for row in json.loads(rows)] == list(range(len(json.loads(rows))))
        changed = await agent("passes_diff", folder=folder, number="tritongpu-coalesce")
        assert changed["answer"]["operations"][0]["what"] == "ttg.convert_layout"
        shown = await agent("passes_show", folder=folder, number="tritongpu-coalesce", after=True)
        assert "ttg.convert_layout" in shown["answer"]["text"]
        events = await agent("passes_find", folder=folder, text="convert_layout")
        assert events["answer"]["events"][0]["argument"] == "tritongpu-coalesce"
        assert (await agent("passes_check", folder=folder))["answer"]["outcome"] == "unchanged"
        report = await agent("passes_report", folder=folder)
        (output,) = report["outputs"]
        assert "<html" in await text(agent, output["uri"])
        resources = (await agent.client.list_resources()).resources
        assert {resource.name for resource in resources} == {"manifest.json", "index.json", "report.html"}

    serve(place, work)


def test_what_needs_no_kernel(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        explained = await agent("explain", thing="tritongpu-coalesce", env="wheel")
        assert explained["answer"]["kind"] == "pass"
        assert (await agent("pins", pytorch="2.9"))["answer"]["release"]["cuda"]["version"] == "3.5.1"
        environments = (await agent("env"))["answer"]["environments"]
        assert "wheel" in {row["name"] for row in environments}
        examined = await agent("doctor", env="wheel", only=["tools"])
        assert (examined["verdict"] == "findings") == (examined["exit_code"] == 1)
        assert examined["answer"]["findings"]
        passes = await agent("pipeline", target=["h100"])
        assert passes["answer"][0]["stage"] == "ttir"
        none = await agent("bisect_status", bisect="never begun", wrong=True)
        # The workspace is shared with other tests, and one of them may have begun another bisect.
        assert any(text in none["message"] for text in ("no bisect was started", "no bisect 'never begun'"))

    serve(place, work)


def test_a_job_has_progress_and_a_verdict(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        begun = await agent("triage", **ADD, when=["registers>5"])
        assert begun["verdict"] == "running"
        result = await agent.finished(begun["job"])
        # Nothing makes a kernel use fewer than six registers, and that is no answer: the exit code is 5.
        assert (result["verdict"], result["exit_code"]) == ("undecided", 5)
        assert not result["answer"]["decided"]
        assert "no change makes it disappear" in result["message"]
        assert [output["path"] for output in result["outputs"]] == [
            str(Path(result["answer"]["folder"]) / "triage.json")
        ]
        jobs = (await agent("job_status"))["jobs"]
        assert [(job["job"], job["tool"], job["verdict"]) for job in jobs] == [(1, "triage", "undecided")]
        begun = await agent("bisect", **ADD, good="3.9.0", bad="3.9.0", when=["spills>0"])
        assert "are the same release" in (await agent.finished(begun["job"]))["message"]
        begun = await agent("compare", **ADD, side_a="wheel", side_b="wheel,num_warps=8")
        assert (await agent.finished(begun["job"]))["verdict"] == "ok"

    serve(place, work)


def test_a_job_is_cancelled_and_goes_on_later(place: Smith) -> None:
    question = {**ADD, "when": ["registers>5"]}

    async def work(agent: Agent) -> None:
        begun = await agent("triage", **question)
        while not any("test 3:" in line for line in (await agent("job_status", job=1, wait=1))["progress"]):
            pass
        stopped = await agent("job_cancel", job=begun["job"])
        assert stopped["verdict"] == "stopped"
        assert "goes on" in "\n".join(stopped["notes"])
        known = (await agent("triage", **question, status=True))["job"]
        assert len((await agent.finished(known))["answer"]["tests"]) >= 3
        assert "no job 99" in (await agent("job_cancel", wrong=True, job=99))["message"]

    serve(place, work)


def test_a_cancelled_call_ends_its_processes_and_the_server_answers(place: Smith) -> None:
    began = place.cwd / "began"
    # A value that the kernel needs is computed when its file is loaded, by the worker that compiles it.
    (place.cwd / "endless.py").write_text(
        "import os\nimport time\nimport triton\nimport triton.language as tl\n\n"
        f"def wait():\n    with open({str(began)!r}, 'w') as file:\n        print(os.getpid(), file=file)\n"
        "    time.sleep(10000)\n\n"
        "SIZE = tl.constexpr(wait())\n\n"
        "@triton.jit\ndef endless(p):\n    tl.store(p, SIZE)\n"
    )

    def worker() -> int:
        text = began.read_text() if began.exists() else ""
        return int(text) if text.endswith("\n") else 0

    async def work(agent: Agent) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(call, agent)
            await anyio.to_thread.run_sync(gone, lambda: worker() > 0)
            assert psutil.pid_exists(worker())
            group.cancel_scope.cancel()
        await anyio.to_thread.run_sync(gone, lambda: not psutil.pid_exists(worker()))
        assert (await agent("env"))["verdict"] == "ok"
        assert (await agent.finished(1))["verdict"] == "stopped"

    async def call(agent: Agent) -> None:
        await agent("kernel_compile", kernel="endless.py", signature="*fp32", target=["h100"])

    serve(place, work)


def test_two_clients_at_once(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        async with anyio.create_task_group() as group:
            for out in ("one", "two"):
                group.start_soon(compile_to, agent, out)

    async def compile_to(agent: Agent, out: str) -> None:
        compiled = await agent("kernel_compile", **ADD, out=f"{out}-{id(agent)}")
        assert compiled["verdict"] == "ok"

    parameters = StdioServerParameters(command=str(SMITH), args=["mcp"], env=place.environ, cwd=place.cwd)

    async def both() -> None:
        with (place.cwd / "mcp.err").open("a") as errors:
            async with (
                Client(stdio_client(parameters, errlog=errors)) as first,
                Client(stdio_client(parameters, errlog=errors)) as second,
                anyio.create_task_group() as group,
            ):
                group.start_soon(work, Agent(first))
                group.start_soon(work, Agent(second))

    anyio.run(both)
    assert len(list(place.cwd.glob("*/manifest.json"))) == 4


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("kernel_compile", {"kernl": "x"}, "'kernl' was unexpected"),
    ("kernel_compile", {"kernel": 5}, "kernel: 5 is not of type 'string'"),
    ("kernel_compile", {"kernel": "a.py", "target": "h100"}, "'h100' is not of type 'array'"),
    ("kernel_compile", {"kernel": ""}, "should be non-empty"),
    ("kernel_compile", {"num_warps": 0}, "less than the minimum of 1"),
    ("kernel_compile", {"kernel": "x" * 30_000}, "more than 20,000"),
    ("kernel_compile", {"kernel": "a\0b"}, "NUL"),
    ("kernel_compile", {"kernel": "--python=/bin/false"}, "no such file"),
    ("kernel_compile", {"kernel": "none.py\nimport os"}, "no such file"),
    ("passes_list", {}, "'folder' is a required property"),
    ("passes_list", {"folder": "nowhere"}, "not a dump"),
    ("kernel_show", {**ADD, "stage": "nothing"}, "unknown stage"),
    ("job_status", {"job": 7}, "there is no job 7"),
    ("job_cancel", {}, "'job' is a required property"),
    ("read", {"uri": "tritonsmith://output/1/../../../etc/passwd"}, "no tool has written"),
    ("read", {"uri": "file:///etc/passwd"}, "no tool has written"),
    ("up", {}, "mcp --allow up"),
    ("clear_cache", {"stale": True}, "mcp --allow clear-cache"),
    ("purge_wheels", {}, "mcp --allow purge-wheels"),
    ("setup_mlir", {}, "mcp --allow setup-mlir"),
]


@pytest.mark.parametrize(("name", "arguments", "message"), BAD_CALLS)
def test_bad_arguments_are_explained(
    refusing: dict[str, dict[str, Any]], name: str, arguments: dict[str, Any], message: str
) -> None:
    result = refusing[key(name, arguments)]
    assert result["verdict"] == "failed"
    assert message in result["message"]
    assert len(result["message"]) < 2000


def key(name: str, arguments: dict[str, Any]) -> str:
    return json.dumps([name, arguments])


@pytest.fixture(scope="module")
def refusing(with_wheel: Smith, tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """The results of all bad calls, from one server."""
    calls = [row[:2] for row in BAD_CALLS]
    smith = with_wheel.beside(tmp_path_factory.mktemp("bad arguments"))
    results = {}

    async def work(agent: Agent) -> None:
        for name, arguments in calls:
            results[key(name, arguments)] = await agent(name, wrong=True, **arguments)

    serve(smith, work)
    return results


def test_what_is_no_tool_and_no_resource(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        with pytest.raises(MCPError, match="unknown tool 'kernel_compil': did you mean"):
            await agent.client.call_tool("kernel_compil", {})
        for uri in (
            "tritonsmith://text/1",
            "file:///etc/passwd",
            "tritonsmith://output/1/manifest.json?page=x",
            "tritonsmith://output/1/manifest.json?page=",
        ):
            with pytest.raises(MCPError, match=r"no tool has written|not a page"):
                await agent.client.read_resource(uri)
        assert (await agent("env"))["verdict"] == "ok"

    serve(place, work)


def test_what_is_no_page_and_no_longer_a_file_of_a_tool(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        compiled = await agent("kernel_compile", **ADD, out="out")
        (output,) = compiled["outputs"]
        for page in (0, 99):
            with pytest.raises(MCPError, match=f"pages?, and no page {page}"):
                await agent.client.read_resource(f"{output['uri']}?page={page}")
        ptx = next(point for point in compiled["answer"]["points"])["stages"]["ptx"]["path"]
        (place.cwd / "out" / ptx).unlink()
        (place.cwd / "out" / ptx).symlink_to(place.cwd / "vector_add.py")
        with pytest.raises(MCPError, match="outside its folder"):
            await text(agent, output["uri"].replace("manifest.json", ptx))
        shown = await agent("kernel_show", wrong=True, kernel="out", stage="ptx")
        assert "outside its folder" in shown["message"]

    serve(place, work)


def test_nothing_is_installed_without_leave(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        # The workspace is shared with other tests, none of which installs this release.
        begun = await agent("compare", **ADD, side_a="3.3.0", side_b="wheel")
        result = await agent.finished(begun["job"])
        assert result["verdict"] == "failed"
        assert "may not install it" in result["message"]
        assert "mcp --allow install" in result["message"]

    serve(place, work)
    assert not (place.home / "envs" / "triton-3.3.0" / "venv").exists()


def test_what_is_allowed_is_offered_and_its_plan_is_a_text(place: Smith) -> None:
    async def work(agent: Agent) -> None:
        listed = {tool.name: tool for tool in (await agent.client.list_tools()).tools}
        assert {"up", "clear_cache"} <= set(listed)
        assert "purge_wheels" not in listed
        hint = listed["clear_cache"].annotations
        assert hint
        assert hint.destructive_hint
        plan = await agent("up", env="wheel", dry_run=True)
        assert plan["verdict"] == "ok"
        assert plan["text"].startswith("#!/bin/sh")
        cleared = await agent("clear_cache", root=str(place.cwd / "cache"))
        assert cleared["verdict"] == "ok"

    (place.cwd / "cache").mkdir()
    serve(place, work, "--allow", "up,clear-cache")


def test_progress_is_sent_to_a_client_that_asks(place: Smith) -> None:
    lines: list[str | None] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        assert progress > 0
        assert total is None
        lines.append(message)

    async def work(agent: Agent) -> None:
        await agent.client.call_tool("kernel_compile", ADD, progress_callback=on_progress)

    serve(place, work)
    assert any(line and line.startswith("[compile vector_add]") for line in lines)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_server_that_is_killed_leaves_no_processes(place: Smith, number: signal.Signals) -> None:
    before = set(fork_servers())
    process = started(place)
    assert process.stdin
    assert process.stdout
    request(process, 2, "tools/call", {"name": "triage", "arguments": {**ADD, "when": ["registers>5"]}})
    gone(lambda: bool(set(fork_servers()) - before))
    process.send_signal(number)
    process.stdout.close()
    process.wait()
    gone(lambda: set(fork_servers()) <= before)
    process.stdin.close()


def test_standard_output_has_messages_only(place: Smith) -> None:
    process = started(place)
    request(process, 2, "tools/call", {"name": "kernel_compile", "arguments": ADD})
    request(process, 3, "tools/call", {"name": "kernel_lint", "arguments": {"kernel": "none.py"}})
    assert process.stdin
    assert process.stdout
    ids = {json.loads(process.stdout.readline())["id"] for _ in range(2)}
    assert ids == {2, 3}
    process.stdin.close()
    rest = process.stdout.read()
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest.splitlines())
    assert process.wait() == 0
    process.stdout.close()


def started(smith: Smith) -> subprocess.Popen[str]:
    """A server after the handshake, without the SDK's client."""
    process = subprocess.Popen(
        (SMITH, "mcp"),
        cwd=smith.cwd,
        # One that is killed leaves its folder for outputs.
        env={**smith.environ, "TMPDIR": str(smith.cwd)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    about = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about}
    request(process, 1, "initialize", hello)
    assert process.stdout
    assert json.loads(process.stdout.readline())["result"]["serverInfo"]["name"] == "tritonsmith"
    send(process, {"method": "notifications/initialized"})
    return process


def request(process: subprocess.Popen[str], number: int, method: str, params: dict[str, Any]) -> None:
    send(process, {"id": number, "method": method, "params": params})


def send(process: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert process.stdin
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    process.stdin.flush()


async def text(agent: Agent, uri: str) -> str:
    """The text of a resource."""
    (content,) = (await agent.client.read_resource(uri)).contents
    assert isinstance(content, TextResourceContents)
    return content.text


def flags(arguments: dict[str, Any]) -> list[str]:
    return [
        f"--{name}={value if isinstance(value, str) else ','.join(value)}"
        for name, value in arguments.items()
    ]


def without_times(answer: dict[str, Any]) -> dict[str, Any]:
    """A compile's answer without what differs from run to run."""
    plain: dict[str, Any] = json.loads(json.dumps(answer))
    for point in plain["points"]:
        del point["seconds"], point["cpu_seconds"]
    return plain
