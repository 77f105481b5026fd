"""Imitate a GPU for a kernel's file: it reports the point's target.

Triton's driver and `torch.cuda` answer for the same GPU, from facts that the tool read in `configs/`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from .border import Table
    from .foreign import GpuTarget

_VENDORS = {"cuda": "nvidia", "hip": "amd"}


class FakeGpu:
    """The known facts of the GPU of a target.

    Attributes:
        target: Triton's GPUTarget.
        queried: whether a fact that differs between targets was queried.
        every: the facts of each target that may be the GPU.
    """

    def __init__(
        self, doubt: Callable[[str], None], unknown: type[BaseException], every: Mapping[str, Table]
    ) -> None:
        self._doubt, self._unknown, self.every = doubt, unknown, every
        self.target: Any = None
        self.queried = False
        self._facts: Table = {}

    def become(self, target: GpuTarget) -> None:
        """Switch to another target."""
        self.target = target
        key = f"{target.backend}:{target.arch}:{target.warp_size}"
        self._facts = self.every.get(key, {"known": {}, "of_model": {}, "names": {}})

    def packages(self) -> set[str]:
        """Return the packages that read environment variables about the GPU."""
        return {name for facts in self.every.values() for name in facts.get("environment", ())}

    def variables(self) -> set[str]:
        """Return the names of these variables, which no other package reads."""
        tables = (facts.get("environment", {}) for facts in self.every.values())
        return {name for packages in tables for variables in packages.values() for name in variables}

    def environment(self, package: str) -> dict[str, str]:
        """Return the variables that a package reads."""
        self.queried = True
        variables: dict[str, str] = self._facts.get("environment", {}).get(package, {})
        return variables

    def fact(self, name: str, called: str) -> Any:
        """Return a fact.

        Args:
            name: our name for it.
            called: the name that the caller uses.
        """
        # A fact that holds for every GPU of the target is certain. One that differs between models (the
        # number of multiprocessors) is answered for one of them, as most kernels compile to the same code
        # anyway, and noted as a doubt. An unknown one has no answer that could be right.
        self.queried = True
        if name in self._facts["known"]:
            return self._facts["known"][name]
        if name not in self._facts["of_model"]:
            self.refuse(called)
        value, model = self._facts["of_model"][name], self._facts["of_model"]["name"]
        self._doubt(f"{called} is taken from {model}: {value}; other GPUs of {self} differ")
        return value

    def note(self, text: str) -> None:
        """Note a difference from a real GPU."""
        self._doubt(text)

    def knows(self, name: str) -> bool:
        """Report whether there is such a fact."""
        return name in self._facts["known"] or name in self._facts["of_model"]

    def refuse(self, called: str) -> NoReturn:
        """Refuse a question whose answer is unknown."""
        self.queried = True
        text = f"{called} of a GPU of {self} is unknown"
        # A bare `except:` around the question would swallow the error, but not the doubt.
        self._doubt(text)
        raise self._unknown(text)

    def __str__(self) -> str:
        return f"{self.target.backend}:{self.target.arch}"

    def capability(self, *_: Any, **__: Any) -> tuple[int, int]:
        """Return the compute capability; for AMD the numbers in the name."""
        self.queried = True
        arch = self.target.arch
        if self.target.backend == "cuda":
            return arch // 10, arch % 10
        # gfx942 is (9, 4): major, minor and a stepping, the last two in hexadecimal (gfx90a). A suffix, as in
        # gfx1250-strict, is a mode of Triton's.
        number = arch.partition("-")[0].replace("gfx", "")
        return int(number[:-2]), int(number[-2], 16)

    def names(self, whose: str) -> Table:
        """Return facts by their names in upstream's driver or in torch: some exist for one vendor only."""
        self.queried = True
        names: Table = self._facts["names"].get(whose, {})
        return names


class Properties(Mapping):  # type: ignore[type-arg] # Python 3.8
    """The result of `get_device_properties` of Triton's driver, with the names of its C source."""

    def __init__(self, gpu: FakeGpu, names: Table) -> None:
        self._gpu, self._names = gpu, names

    def __getitem__(self, name: str) -> Any:
        return self._gpu.fact(self._names[name], name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class DriverUtils:
    """The `utils` of the driver: facts of the device; binaries cannot be loaded."""

    def __init__(self, gpu: FakeGpu) -> None:
        self._gpu = gpu

    def get_device_properties(self, _device: int = 0) -> Properties:
        """Return the properties, by the names of this Triton's driver."""
        import triton

        # The properties differ between releases. They are in the driver's C source, which Triton compiles on
        # the user's machine and so brings along; later releases keep it elsewhere, and then all names are
        # answered.
        names = self._gpu.names("driver")
        folder = os.path.join(os.path.dirname(triton.__file__), "backends")
        path = os.path.join(folder, _VENDORS[self._gpu.target.backend], "driver.c")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                text = file.read()
            names = {name: ours for name, ours in names.items() if f'"{name}"' in text}
        return Properties(self._gpu, names)

    def get_device_capability(self, _device: int = 0) -> tuple[int, int]:
        """Return the compute capability."""
        return self._gpu.capability()

    def get_current_device(self) -> int:
        """Return the only device."""
        return 0

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._gpu.refuse(f"driver.active.utils.{name}")


class FakeDriver:
    """A substitute for `triton.runtime.driver.active`."""

    def __init__(self, gpu: FakeGpu) -> None:
        self._gpu = gpu
        self.utils = DriverUtils(gpu)

    def get_current_target(self) -> Any:
        """Return the target of the compile."""
        self._gpu.queried = True
        return self._gpu.target

    def get_device_capability(self, *_: Any) -> tuple[int, int]:
        """Return the compute capability."""
        return self._gpu.capability()

    def get_current_device(self) -> int:
        """Return the only device."""
        return 0

    def set_current_device(self, _device: int) -> None:
        """Do nothing: there is only one device."""

    def get_current_stream(self, _device: int = 0) -> int:
        """Return the default stream."""
        return 0

    def get_active_torch_device(self) -> Any:
        """Return torch's device, which has one name for both vendors."""
        torch = importlib.import_module("torch")
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """Return torch's interface for the device."""
        return importlib.import_module("torch.cuda")

    def get_benchmarker(self) -> Callable[..., Any]:
        """Return a function that refuses to measure."""

        def measure(*_: Any, **__: Any) -> Any:
            self._gpu.refuse("the time of a kernel")

        return measure

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        from triton.backends import backends

        self._gpu.queried = True
        # An attribute that the real driver lacks is an AttributeError here, too: packages try several. The
        # table of C types asks no GPU, so it is the one answer that is the real driver's.
        real = getattr(backends[_VENDORS[self._gpu.target.backend]].driver, name)
        if name != "map_python_to_cpp_type":
            self._gpu.refuse(f"driver.active.{name}")
        return real.__get__(self)
