"""Profile a process's launches with Proton, Triton's own profiler.

`sitecustomize.py` of a scratch folder on PYTHONPATH calls `start` in every Python of the process tree.
"""

from __future__ import annotations

import atexit
import functools
import inspect
import os
import sys
import types
from collections.abc import Callable

from .border import read_request, text_of
from .messages import ProfiledRow, ProfileRequest, ProfileSession
from .stub_finder import ImportWatcher


def start(request_path: str) -> int:
    """Start a session as soon as Triton is imported; it ends with the process."""
    request = read_request(ProfileRequest, request_path)
    if request.sessions:
        sys.meta_path.insert(0, ImportWatcher({"triton": functools.partial(_with_triton, request)}))
    return 0


def _with_triton(request: ProfileRequest, run: Callable[[], None], _triton: types.ModuleType) -> None:
    run()
    place = os.path.join(request.results, str(os.getpid()))
    session: ProfileSession | None = None
    refused = []
    try:
        import triton.profiler.flags
        from triton import profiler
    except ImportError as error:
        refused.append(f"{type(error).__name__}: {error}")
    else:
        module = triton.profiler.flags
        for candidate in filter(functools.partial(_known, profiler), request.sessions):
            try:
                _start(profiler, place, candidate)
            except Exception as error:  # noqa: BLE001 - libproton raises what CUPTI and ROCm say
                name = " ".join(filter(None, (candidate.backend, candidate.mode)))
                refused.append(f"{name}: {error}")
                continue
            session = candidate
            # Otherwise a session of the program's would end this one.
            getattr(module, "flags", module).command_line = True
            atexit.register(profiler.finalize)
            break
    with open(f"{place}.json", "w", encoding="utf-8") as file:
        file.write(text_of(ProfiledRow(session, tuple(refused))) + "\n")


def _known(profiler: types.ModuleType, session: ProfileSession) -> bool:
    """Report whether this Proton has the session's backend."""
    # A Proton with modes would start `cupti_pcsampling`, but measure nothing.
    modes = "mode" in inspect.signature(profiler.start).parameters
    return not session.mode if not modes else session.backend != "cupti_pcsampling"


def _start(profiler: types.ModuleType, place: str, session: ProfileSession) -> None:
    mode = {"mode": session.mode} if session.mode else {}
    profiler.start(place, backend=session.backend, **mode)
