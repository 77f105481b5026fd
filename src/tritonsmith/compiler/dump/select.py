"""Select a kernel and a dump of an output folder."""

from __future__ import annotations

from tritonsmith.compiler.dump.index import Dump, DumpedKernel, DumpIndex
from tritonsmith.core.errors import FactError, UsageError, did_you_mean


def kernel(index: DumpIndex, name: str) -> DumpedKernel:
    """Return a kernel by name, or the only one.

    Raises:
        UsageError: there is no such kernel, or none is named and there are several.
        FactError: the dump has none.
    """
    known = [entry.name for entry in index.kernels]
    if not known:
        raise FactError("this dump contains no IR", where=index.folder / index.output)
    if not name and len(known) > 1:
        hints = [f"choose one: --kernel {candidate}" for candidate in known[:8]]
        raise UsageError("this dump has several kernels", hints=hints)
    match = next((entry for entry in index.kernels if entry.name == (name or known[0])), None)
    if match is None:
        raise UsageError(f"no kernel {name!r} in this dump", hints=did_you_mean(name, known))
    return match


def dump(index: DumpIndex, name: str, word: str) -> Dump:
    """Return a dump of a kernel by its number, or by the name of a pass that ran once.

    Args:
        index: the dump folder's index.
        name: the kernel.
        word: `12`, `tritongpu-coalesce` or `TritonGPUCoalesce`.

    Raises:
        UsageError: there is no such dump, or there are several.
    """
    dumps = index.of(name)
    if word.isdecimal():
        if int(word) < len(dumps):
            return dumps[int(word)]
        raise UsageError(f"no pass {word}", hints=[f"passes of {name}: 0 to {len(dumps) - 1}"])
    matches = [entry for entry in dumps if word in (entry.argument, entry.name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        numbers = ", ".join(str(entry.number) for entry in matches)
        raise UsageError(f"{word} ran more than once", hints=[f"choose one by its number: {numbers}"])
    names = {entry.label for entry in dumps}
    raise UsageError(f"no pass {word!r} in this dump", hints=did_you_mean(word, names))
