"""Parse `nvidia-smi -q -x` for each GPU, with care: drivers rename elements and omit values."""

from __future__ import annotations

import re
from dataclasses import dataclass
from xml.etree import ElementTree as ET

from tritonsmith.core.plan import process

_PATIENCE = 20.0  # seconds; a GPU that hangs makes it wait
_UNTOLD = re.compile(
    r"\[?(N/A|Not Supported|Unknown Error|Not Found|Requested functionality .*)?\]?", re.IGNORECASE
)


class SmiError(Exception):
    """An unreadable answer of nvidia-smi; the text says why."""


@dataclass(frozen=True)
class SmiGpu:
    """One GPU.

    Attributes:
        name: the product, and its place on the bus.
        element: the GPU's part of the answer.
    """

    name: str
    element: ET.Element

    def value(self, *paths: str) -> str:
        """Return the text of the first of these elements that has one; empty if none does."""
        texts = ((self.element.findtext(path) or "").strip() for path in paths)
        return next((text for text in texts if not _UNTOLD.fullmatch(text)), "")

    def anywhere(self, texts: list[str]) -> str:
        """Return the first text of any of its elements that holds one of these; empty if there is none."""
        contents = (" ".join((element.text or "").split()) for element in self.element.iter())
        return next((content for content in contents if any(text in content for text in texts)), "")


def read() -> tuple[SmiGpu, ...]:
    """Ask nvidia-smi.

    Raises:
        SmiError: it is missing, fails, or does not answer in time.
    """
    program = process.which("nvidia-smi")
    if not program:
        raise SmiError("no nvidia-smi on PATH")
    answer = process.query((program, "-q", "-x"), timeout=_PATIENCE)
    if answer is None:
        raise SmiError(f"nvidia-smi -q -x did not answer within {_PATIENCE:.0f} s")
    if answer.code:
        lines = (answer.out or answer.err).splitlines()
        raise SmiError(f"nvidia-smi ends with {answer.code}: {lines[-1] if lines else 'no output'}")
    return parse(answer.out)


def parse(text: str) -> tuple[SmiGpu, ...]:
    """Return the GPUs of an answer.

    Raises:
        SmiError: the text is not such an answer.
    """
    if "<!ENTITY" in text:
        raise SmiError("nvidia-smi -q -x defines entities: refused")
    try:
        root = ET.fromstring(text)  # noqa: S314 - without entities, whose expansion is what is dangerous
    except ET.ParseError as error:
        raise SmiError(f"nvidia-smi -q -x is not XML: {error}") from error
    return tuple(
        SmiGpu(f"{(gpu.findtext('product_name') or 'GPU').strip()} at {gpu.get('id', 'unknown')}", gpu)
        for gpu in root.findall("gpu")
    )
