"""`passes.show`: one dump on the screen."""

from __future__ import annotations

from rich.text import Text

from tritonsmith.errors import SmithError
from tritonsmith.kernels import normalize
from tritonsmith.kernels.show import stage
from tritonsmith.passes.dump.index import Dump, DumpIndex

_LANGUAGES = {"mlir": "ttgir", "ll": "llir", "ptx": "ptx", "amdgcn": "amdgcn"}  # as kernel.show calls them


def text(index: DumpIndex, dump: Dump, *, plain: bool = False) -> str:
    """The IR of a dump.

    Args:
        index: of the folder.
        dump: one of it.
        plain: values renumbered, locations taken out.
    """
    content = index.text(dump)
    language = _LANGUAGES.get(_kind(dump))
    return normalize.text(content, language) if plain and language else content


def highlighted(index: DumpIndex, dump: Dump, *, plain: bool = False) -> Text:
    """The same in colours."""
    content = text(index, dump, plain=plain)
    language = _LANGUAGES.get(_kind(dump))
    return stage.highlighted(content, language) if language else Text(content)


def after(index: DumpIndex, dump: Dump) -> Dump:
    """What the pass of a dump left.

    Raises:
        SmithError: nothing that was printed shows it.
    """
    if dump.when != "before":
        return dump
    if dump.against is None:
        raise SmithError(f"the output of {dump.name} was not printed", where=index.folder)
    return index.dumps[dump.against]


def _kind(dump: Dump) -> str:
    return dump.path.rpartition(".")[2]
