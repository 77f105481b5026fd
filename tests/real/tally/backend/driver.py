"""The driver of a backend for no device, which is never active."""

from typing import Any, NoReturn

from triton.backends.driver import DriverBase


class TallyDriver(DriverBase):  # type: ignore[misc] # Triton lives in another interpreter
    @staticmethod
    def is_active() -> bool:
        return False

    def _refuse(self, *_: Any) -> NoReturn:
        raise RuntimeError("tally has no device")

    get_current_target = get_active_torch_device = get_benchmarker = map_python_to_cpp_type = _refuse
