"""Show one dump on the screen: `passes.show`."""

from __future__ import annotations

from rich.text import Text

from tritonsmith.compiler.dump.index import Dump, DumpIndex
from tritonsmith.inspect.show import stage
from tritonsmith.ir import normalize

_LANGUAGES = {"mlir": "ttgir", "ll": "llir", "ptx": "ptx", "amdgcn": "amdgcn"}  # as kernel.show calls them


def text(index: DumpIndex, dump: Dump, *, plain: bool = False) -> str:
    """Return the IR of a dump; `plain` renumbers values and removes locations."""
    content = index.text(dump)
    return normalize.text(content, dump.language) if plain else content


def highlighted(index: DumpIndex, dump: Dump, *, plain: bool = False) -> Text:
    """Return the same text with colours."""
    content = text(index, dump, plain=plain)
    language = _LANGUAGES.get(dump.kind)
    return stage.highlighted(content, language) if language else Text(content)
