"""Print IR in MLIR's generic form with the Triton that printed it."""

from __future__ import annotations

import contextlib
from functools import partial
from typing import Any

from .border import EXIT_REFUSED, WorkerRefusal, read_request, refusal_text, text_of
from .forked_call import in_child
from .libtriton import UnusableError, context_of, library, load
from .messages import ChildRow, GenericRequest
from .replay import write

# MLIR prints a module in generic form if it is invalid; builtin.module may only have attributes of dialects.
_INVALID = "generic"


def print_all(request_path: str) -> int:
    """Print every file of a request; results go to the file that it names."""
    request = read_request(GenericRequest, request_path)
    rows: list[str] = []
    code = 0
    try:
        lib = load(library())
        for job in request.jobs:
            act = partial(_print, lib, job.input, job.out, request.memory)
            answer = in_child(act, timeout=request.timeout)
            rows.append(text_of(ChildRow(answer["status"], answer.get("error", ""), answer["seconds"])))
    except (UnusableError, ImportError) as error:
        rows.append(refusal_text(WorkerRefusal("unusable", str(error))))
        code = EXIT_REFUSED
    write(request.results, "".join(f"{row}\n" for row in rows))
    return code


def _print(lib: Any, path: str, out: str, memory: int) -> None:
    _limit(memory)
    context = context_of(lib)
    write(out, generic_text(lib, context, lib.ir.parse_mlir_module(path, context)))


def _limit(memory: int) -> None:
    """Limit the memory of this process, in bytes."""
    # The generic form repeats the definition of an alias at each use, so a text may grow without bound.
    import resource

    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    wanted = memory if most == resource.RLIM_INFINITY else min(memory, most)
    with contextlib.suppress(ValueError, OSError):  # macOS refuses it
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))


def generic_text(lib: Any, context: Any, module: Any) -> str:
    """Return a module in generic form; the module is invalid afterwards."""
    builder = lib.ir.builder(context)
    unit = getattr(builder, "get_unit_attr", None)  # 3.0 and others have it not; any attribute will do
    module.set_attr(_INVALID, unit() if unit else builder.get_bool_attr(True))
    return str(module)
