"""Profile a process's launches with Proton, Triton's own profiler.

`sitecustomize.py` of a scratch folder on PYTHONPATH calls `start` in every Python of the process tree.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import json
import os
import sys
import types
from collections.abc import Callable
from typing import TYPE_CHECKING

from .stub_finder import ImportWatcher

if TYPE_CHECKING:
    from .json_types import Table


def start(request_path: str) -> int:
    """Start a session as soon as Triton is imported; it ends with the process."""
    with open(request_path, encoding="utf-8") as file:
        request = json.load(file)
    if request["sessions"]:
        sys.meta_path.insert(0, ImportWatcher({"triton": functools.partial(_with_triton, request)}))
    return 0


def _with_triton(request: Table, run: Callable[[], None], _triton: types.ModuleType) -> None:
    run()
    place = os.path.join(request["results"], str(os.getpid()))
    session, refused = {}, []
    try:
        import triton.profiler.flags
        from triton import profiler
    except ImportError as error:
        refused.append(f"{type(error).__name__}: {error}")
    else:
        module = triton.profiler.flags
        for one in filter(functools.partial(_known, profiler), request["sessions"]):
            try:
                _start(profiler, place, one)
            except Exception as error:  # noqa: BLE001 - libproton raises what CUPTI and ROCm say
                refused.append(f"{' '.join(filter(None, one.values()))}: {error}")
                continue
            session = one
            getattr(
                module, "flags", module
            ).command_line = True  # a session of the program's would end this one
            atexit.register(profiler.finalize)
            break
    with open(f"{place}.json", "w", encoding="utf-8") as file:
        file.write(json.dumps({"session": session, "refused": refused}) + "\n")


def _known(profiler: types.ModuleType, session: Table) -> bool:
    """Report whether this Proton has the session's backend."""
    # A Proton with modes would start `cupti_pcsampling`, but measure nothing.
    modes = "mode" in inspect.signature(profiler.start).parameters
    return not session["mode"] if not modes else session["backend"] != "cupti_pcsampling"


def _start(profiler: types.ModuleType, place: str, session: Table) -> None:
    mode = {"mode": session["mode"]} if session["mode"] else {}
    profiler.start(place, backend=session["backend"], **mode)
