"""Make a torch for the CPU answer that its accelerator is a GPU, which `torch.compile` needs: experimental.

torch has no interface for this, so `_patch` replaces a method of a C++ object. It runs in a user's process
only if that process uses `torch.compile`, and only with a torch for which a process of its own, the canary,
survived it. The result of the canary is kept for this torch.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib
import os
import signal
import subprocess
import sys
import types
from typing import TYPE_CHECKING, Any

from .border import BorderError, row_of, text_of
from .messages import CanaryRow, CaptureRequest
from .processes import die_with_parent

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_HOOKS = "_ZN2at6detail12getCUDAHooksEv"
_METHODS = 8  # of the object that are tried
_TABLE = 64  # entries of its table that are copied
_ABOVE = 16  # bytes in front of the first method
_SHOWN = 200  # characters of an error
TRIAL = (sys.executable, os.path.dirname(os.path.abspath(__file__)), "canary")
_KEPT: list[Any] = []  # objects whose addresses C++ holds: Python must not free them


class TorchAccelerator:
    """The accelerator of this process's torch, which is patched once, when it is first needed.

    Args:
        torch: the module.
        request: the request of the capture.
        note: a function that takes a message for the user.
        trial: the command of the canary.
    """

    def __init__(
        self,
        torch: types.ModuleType,
        request: CaptureRequest,
        note: Callable[[str], None],
        trial: Sequence[str] = TRIAL,
    ) -> None:
        self._torch, self._request, self._note, self._trial = torch, request, note, trial
        self._works: bool | None = None

    def works(self) -> bool:
        """Report whether torch takes the GPU for its accelerator from here on; if not, a note says why."""
        if self._works is None:
            error = canary(self._torch, self._request, self._trial)
            self._works = not error
            if error:
                self._note(f"torch.compile is not captured with this torch: {error}")
            else:
                _patch(self._torch)
        return self._works


def canary(torch: types.ModuleType, request: CaptureRequest, trial: Sequence[str]) -> str:
    """Return the reason why this torch cannot be patched; empty if it can."""
    library = library_of(torch)
    try:
        about = os.stat(library)
    except OSError as missing:
        return f"{library}: {missing.strerror}"
    # A build of torch may be replaced under the same version, and another way to patch is another trial.
    facts = (torch.__version__, library, about.st_size, about.st_mtime_ns, sys.version, _source())
    name = hashlib.sha256(repr(facts).encode()).hexdigest()
    remembered = os.path.join(request.canaries, f"torch-{name[:32]}.json")
    try:
        with open(remembered, encoding="utf-8") as file:
            return row_of(CanaryRow, file.read()).error
    except (OSError, BorderError):
        pass  # no earlier process has tried this torch
    error = fate(trial, request)
    os.makedirs(request.canaries, exist_ok=True)
    # Several processes of a program may try at the same time: each replaces the whole file.
    partial = f"{remembered}.{os.getpid()}"
    with open(partial, "w", encoding="utf-8") as file:
        file.write(text_of(CanaryRow(error)) + "\n")
    os.replace(partial, remembered)
    return error


def fate(trial: Sequence[str], request: CaptureRequest) -> str:
    """Run the canary, and return how it died; empty if it lives."""
    # Its Python must not be captured itself: `sitecustomize` of this run is not on its path.
    site = os.path.join(os.path.dirname(request.results), "site")
    paths = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in paths if path != site)}
    try:
        done = subprocess.run(
            trial,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=request.canary_timeout,
        )
    except subprocess.TimeoutExpired:
        return f"a trial of it did not end within {request.canary_timeout:.0f} s"
    if done.returncode < 0:
        return f"a trial of it ended by {signal.Signals(-done.returncode).name}"
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines() or [f"exit code {done.returncode}"]
        return f"a trial of it failed: {lines[-1][:_SHOWN]}"
    return ""


def sing() -> int:
    """Run the command `canary`: patch torch, and do what `torch.compile` does with tensors of the GPU."""
    die_with_parent()
    torch: Any = importlib.import_module("torch")
    fake_tensor: Any = importlib.import_module("torch._subclasses.fake_tensor")
    from .gpu_tensors import device_guard

    device_guard(torch)
    _patch(torch)
    fake_tensor.FakeTensorMode.avoid_device_init = property(lambda _: True)
    # Autograd asks for the streams of the device, and for the accelerator: a wrong patch shows here.
    with fake_tensor.FakeTensorMode():
        traced = torch.ones(3, device="cuda", requires_grad=True)
        (traced * 2).sum().backward()
    plain = torch.ones(3, requires_grad=True)
    (plain * 2).sum().backward()
    if plain.grad is None or plain.grad.tolist() != [2.0] * 3:
        raise ValueError(f"the gradient is {plain.grad}")
    return 0


def library_of(torch: types.ModuleType) -> str:
    """Return the path of the library whose object is patched."""
    return os.path.join(os.path.dirname(str(torch.__file__)), "lib", "libtorch_cpu.so")


def _source() -> str:
    """Return this module's text."""
    with open(__file__, encoding="utf-8") as file:
        return file.read()


def _patch(torch: types.ModuleType) -> None:
    """Make C++ report a torch that is built for a GPU: autograd asks for the streams of traced tensors."""
    # `isBuilt` is one of the first virtual methods of at::CUDAHooksInterface. Its place in the table differs
    # between releases, so one method after the other is replaced until the accelerator is `cuda`. Calling a
    # wrong one with this signature is undefined behaviour, which is what the canary is for.
    ask = torch._C._accelerator_getAccelerator  # noqa: SLF001 - torch's own name
    find = ctypes.CDLL(library_of(torch))[_HOOKS]
    find.restype = ctypes.c_void_p
    table = ctypes.c_void_p.from_address(find())
    real = table.value or 0
    kind = ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p, ctypes.c_long)
    yes, no = kind(lambda *_: 1), kind(lambda *_: 0)
    # The table itself is in read-only memory: the object is pointed to a changed copy.
    for number in range(_METHODS):
        changed = (ctypes.c_void_p * _TABLE)()
        ctypes.memmove(changed, real - _ABOVE, ctypes.sizeof(changed))
        at = number + _ABOVE // ctypes.sizeof(ctypes.c_void_p)
        changed[at] = ctypes.cast(yes, ctypes.c_void_p).value
        table.value = ctypes.addressof(changed) + _ABOVE
        if ask() == torch.device("cuda"):
            # Two entries on is hasPrimaryContext: where it is false, autograd asks for no stream.
            changed[at + 2] = ctypes.cast(no, ctypes.c_void_p).value
            _KEPT.extend((yes, no, changed))
            return
    table.value = real
