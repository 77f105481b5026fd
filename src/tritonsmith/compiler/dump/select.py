"""Select a kernel and a dump of an output folder."""

from __future__ import annotations

from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.core.errors import FactError, UsageError, did_you_mean


def kernel(index: DumpIndex, name: str) -> DumpedKernel:
    """A kernel by name, or the only one.

    Raises:
        UsageError: there is no such kernel, or none is named and there are several.
        FactError: the dump has none.
    """
    known = [one.name for one in index.kernels]
    if not known:
        raise FactError("this dump contains no IR", where=index.folder / index.output)
    if not name and len(known) > 1:
        hints = [f"choose one: --kernel {one}" for one in known[:8]]
        raise UsageError("this dump has several kernels", hints=hints)
    found = next((one for one in index.kernels if one.name == (name or known[0])), None)
    if found is None:
        raise UsageError(f"no kernel {name!r} in this dump", hints=did_you_mean(name, known))
    return found


def dump(index: DumpIndex, name: str, word: str) -> Dump:
    """A dump of a kernel by its number, or by the name of a pass that ran once.

    The word is `12`, `tritongpu-coalesce` or `TritonGPUCoalesce`.

    Raises:
        UsageError: there is no such dump, or there are several.
    """
    mine = index.of(name)
    if word.isdecimal():
        if int(word) < len(mine):
            return mine[int(word)]
        raise UsageError(f"no pass {word}", hints=[f"passes of {name}: 0 to {len(mine) - 1}"])
    found = [one for one in mine if word in (one.argument, one.name)]
    if len(found) == 1:
        return found[0]
    if found:
        numbers = ", ".join(str(one.number) for one in found)
        raise UsageError(f"{word} ran more than once", hints=[f"choose one by its number: {numbers}"])
    names = {one.label for one in mine}
    raise UsageError(f"no pass {word!r} in this dump", hints=did_you_mean(word, names))
