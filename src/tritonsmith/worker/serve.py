"""A process that compiles points: forked, or started separately to load the file for one target."""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from . import parent_death
from .backend_options import check_options
from .compile_point import compile_point
from .file_context import FileSurroundings, prepare
from .load import LoadedKernel, load_checked
from .ptxas import listen
from .refusal import RequestRefusedError
from .row import failed, told
from .stub_ledger import UnknownError

if TYPE_CHECKING:  # Python 3.8 cannot evaluate this
    from .json_types import Table

    Loader = Callable[[list[Any]], LoadedKernel | None]


def serve_alone(request_path: str, number: str) -> int:
    """Run the command `serve`: this process loads the file itself, for the target of a point."""
    parent_death.interrupt()
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    with open(os.dup(0), encoding="ascii") as reader, open(os.dup(1), "w", encoding="utf-8") as writer:
        around = prepare(request)
        check_options(request)
        try:
            loaded = loader(load_checked(request, around, int(number)), around)
        except RequestRefusedError as error:  # for this target only: others have their rows
            loaded = refuser(error)
        serve(request, loaded, around, reader, writer)
    return 0


def serve(
    request: Table, loaded: Loader, around: FileSurroundings, reader: Iterable[str], writer: Any
) -> None:
    """Read point numbers, one per line; compile each point and write one JSON object per line."""
    parent_death.ignore_interrupts()
    listen()
    faulthandler.enable(2)  # into the log of the point that is being compiled
    for line in reader:
        result = one(request, request["points"][int(line)], loaded, around.ledger)
        writer.write(json.dumps(result) + "\n")
        writer.flush()


def one(request: Table, point: Table, loaded: Loader, ledger: Any) -> Table:
    """Compile a point, whatever happens; returns its row without the id."""
    folder = os.path.join(request["output"], point["id"])
    os.makedirs(folder, exist_ok=True)
    log = os.path.join(folder, "log")
    made = [tool["stage"] for tool in request["disassemblers"].values()]
    stages = [f"{request['kernel']}.{stage}" for stage in [*request["stages"], *made]]
    for name in ["log", "metadata.json", *stages]:  # of an earlier run, and perhaps links
        with contextlib.suppress(FileNotFoundError):
            os.unlink(os.path.join(folder, name))
    into = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    os.dup2(into, 1)
    os.dup2(into, 2)
    os.close(into)
    began = time.monotonic()
    kernel = None
    try:
        kernel = loaded(point["target"])
        ledger.strict = True
        result = compile_point(request, point, kernel, folder)
    except KeyboardInterrupt:
        raise
    except UnknownError as error:
        result = failed("failed", str(error), began)
    except RequestRefusedError as error:
        result = failed(
            "failed", str(error) + (f"\n{error.about['why']}" if error.about.get("why") else ""), began
        )
        result["loaded"] = kernel is not None or request["ir"]
    except BaseException as error:  # noqa: BLE001 - SystemExit too: a failure of any kind is an answer
        traceback.print_exc()
        strange = isinstance(error, KeyError) and error.args[0] in point["signature"].values()
        what = f"this Triton has no type {error}" if strange else told(error, kernel)
        result = failed("failed", what, began)
    ledger.strict = False
    sys.stdout.flush()
    sys.stderr.flush()
    return {**result, **ledger.news()}


def loader(first: LoadedKernel | None, around: FileSurroundings) -> Loader:
    """The kernel for a target; the file was loaded for that target, or did not query the GPU."""
    from triton.backends.compiler import GPUTarget

    def loaded(target: list[Any]) -> LoadedKernel | None:
        around.become(GPUTarget(*target))
        return first

    return loaded


def refuser(error: RequestRefusedError) -> Loader:
    """The reason why there is no kernel for a target."""

    def refused(_: list[Any]) -> LoadedKernel | None:
        raise error

    return refused
