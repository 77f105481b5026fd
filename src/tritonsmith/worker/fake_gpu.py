"""The GPU that a kernel's file is told of: the point's target, of which there is none here.

Triton's driver and `torch.cuda` answer for the same GPU, from facts that the tool read in `configs/`. What is
true for every GPU of the target is answered; what differs between models is answered for one of them, and
noted as a doubt; what is not known is refused.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .json_types import Table

_VENDORS = {"cuda": "nvidia", "hip": "amd"}


class FakeGpu:
    """What is known of the GPU of a target.

    Attributes:
        target: Triton's GPUTarget.
        asked: whether anything that differs between targets was asked.
    """

    def __init__(
        self, doubt: Callable[[str], None], unknown: type[BaseException], every: Mapping[str, Table]
    ) -> None:
        self._doubt, self._unknown, self._every = doubt, unknown, every
        self.target: Any = None
        self.asked = False
        self._facts: Table = {}

    def become(self, target: Any) -> None:
        """Answer for another target from now on."""
        self.target = target
        key = f"{target.backend}:{target.arch}:{target.warp_size}"
        self._facts = self._every.get(key, {"known": {}, "of_model": {}, "names": {}})

    def fact(self, name: str, called: str) -> Any:
        """One fact.

        Args:
            name: ours.
            called: as who asks calls it.
        """
        self.asked = True
        if name in self._facts["known"]:
            return self._facts["known"][name]
        if name not in self._facts["of_model"]:
            self.refuse(called)
        value, model = self._facts["of_model"][name], self._facts["of_model"]["name"]
        self._doubt(f"{called} is taken from {model}: {value}; other GPUs of {self} have others")
        return value

    def refuse(self, called: str) -> NoReturn:
        """No answer would be true."""
        self.asked = True
        text = f"{called} of a GPU of {self} is not known here"
        self._doubt(text)  # a bare `except:` may be around
        raise self._unknown(text)

    def __str__(self) -> str:
        return f"{self.target.backend}:{self.target.arch}"

    def capability(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Of compute; the numbers in the name of AMD's."""
        self.asked = True
        arch = self.target.arch
        if self.target.backend == "cuda":
            return arch // 10, arch % 10
        number = arch.partition("-")[0].replace("gfx", "")  # gfx1250-strict is a mode of Triton's
        return int(number[:-2]), int(number[-2], 16)

    def names(self, whose: str) -> Table:
        """What upstream's driver, or torch, calls the facts: each vendor has names that the other has not."""
        self.asked = True
        found: Table = self._facts["names"].get(whose, {})
        return found


class Properties(Mapping):  # type: ignore[type-arg] # Python 3.8
    """What `get_device_properties` of Triton's driver gives: as its C source names them."""

    def __init__(self, gpu: FakeGpu, names: Table) -> None:
        self._gpu, self._names = gpu, names

    def __getitem__(self, name: str) -> Any:
        return self._gpu.fact(self._names[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class DriverUtils:
    """`utils` of the driver: what is known of the device; nothing can be loaded."""

    def __init__(self, gpu: FakeGpu) -> None:
        self._gpu = gpu

    def get_device_properties(self, _device: int = 0) -> Properties:
        """As the driver of this Triton names them."""
        import triton

        names = self._gpu.names("driver")
        folder = os.path.join(os.path.dirname(triton.__file__), "backends")
        path = os.path.join(folder, _VENDORS[self._gpu.target.backend], "driver.c")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            names = {name: ours for name, ours in names.items() if f'"{name}"' in text}
        return Properties(self._gpu, names)

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        """Of compute."""
        return self._gpu.capability()

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._gpu.refuse(f"driver.active.utils.{name}")


class FakeDriver:
    """`triton.runtime.driver.active`."""

    def __init__(self, gpu: FakeGpu) -> None:
        self._gpu = gpu
        self.utils = DriverUtils(gpu)

    def get_current_target(self) -> Any:
        """What is compiled for."""
        self._gpu.asked = True
        return self._gpu.target

    def get_device_capability(self, *_: Any) -> tuple[int, int]:
        """Of compute."""
        return self._gpu.capability()

    def get_current_device(self) -> int:
        """The only one."""
        return 0

    def set_current_device(self, _device: int) -> None:
        """It stays."""

    def get_current_stream(self, _device: int = 0) -> int:
        """The default one."""
        return 0

    def get_active_torch_device(self) -> Any:
        """What torch calls it, whichever vendor's it is."""
        torch = importlib.import_module("torch")
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """What torch has for it."""
        return importlib.import_module("torch.cuda")

    def get_benchmarker(self) -> Callable[..., Any]:
        """A function that measures nothing."""

        def measure(*_: Any, **__: Any) -> Any:
            self._gpu.refuse("the time of a kernel")

        return measure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from triton.backends import backends

        self._gpu.asked = True
        real = getattr(backends[_VENDORS[self._gpu.target.backend]].driver, name)  # AttributeError, as there
        if name != "map_python_to_cpp_type":  # a table
            self._gpu.refuse(f"driver.active.{name}")
        return real.__get__(self)
