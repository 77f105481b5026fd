"""A pytest plugin: a driver that names a target where there is no GPU, and launches nothing.

Frontend tests compile up to an error or up to the first stages; up to 3.3 they ask the driver for the
GPU. Newer Tritons have such a driver of their own (`triton._filecheck`).
"""

from __future__ import annotations


def pytest_configure() -> None:
    """Install the driver if none is active."""
    import triton
    from triton.backends.compiler import GPUTarget

    class StubDriver:
        def get_current_target(self) -> object:
            return GPUTarget("cuda", 90, 32)

        def get_current_device(self) -> int:
            return 0

        def get_current_stream(self, _device: int) -> int:
            return 0

    try:
        triton.runtime.driver.active.get_current_target()
    except RuntimeError:  # "0 active drivers"
        triton.runtime.driver.set_active(StubDriver())
