"""What a shell offers at Tab: tasks, flags, and the values of flags that come from a list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from pathlib import Path

from tritonsmith.tasks import namespace
from tritonsmith.tasks.option_fields import Option
from tritonsmith.tasks.option_task import WIDE

# Bash splits words at `=` and `:`, and replaces only what is behind the last of these.
BASH = r"""_complete_tritonsmith() {
    local word=${COMP_LINE:0:COMP_POINT} values
    word=${word##* }
    values=$(tritonsmith --complete -- "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    local IFS=$'\n'
    COMPREPLY=($(compgen -W "$values" -- "${word##*=}"))
    if [[ $word == *:* && $COMP_WORDBREAKS == *:* ]]; then
        COMPREPLY=("${COMPREPLY[@]#"${word%"${word##*:}"}"}")
    fi
}
complete -F _complete_tritonsmith -o default tritonsmith"""


def typed(argv: Sequence[str]) -> list[str]:
    """The words before the cursor, the program's name first; the last one may be empty.

    Args:
        argv: after the program's name: `--complete -- LINE`; zsh and fish give the line in words.
    """
    line = " ".join(argv[argv.index("--") + 1 :]) if "--" in argv else ""
    words = line.split()
    return [*words, ""] if line.endswith(" ") or not words else words


def candidates(words: Sequence[str]) -> Iterable[str]:
    """What may stand in the place of the last word; nothing where files are to be offered."""
    *before, last = words[1:] or [""]
    names = {alias for name, aliases in namespace.task_names.items() for alias in (name, *aliases)}
    name = next((word for word in before if word in names), "")
    if not name:
        return sorted(names) if not last.startswith("-") else ["--help", "--list", "--version"]
    options = (*namespace[name].options, WIDE)
    flag, equals, part = last.partition("=")
    asked, start = (flag, part) if equals else (before[-1], last)
    option = next((one for one in options if one.flag == asked and one.placeholder), None)
    if option:
        return _values(option, start, before)
    if last.startswith("-"):
        return sorted(each for one in options for each in _spellings(one))
    number = _words(before[before.index(name) + 1 :], options)
    word = next(islice((one for one in options if one.word), number, None), None)
    return _values(word, last, before) if word else ()


def _words(before: Sequence[str], options: Iterable[Option]) -> int:
    """The number of words that are no flags, nor values of flags."""
    valued = {one.flag for one in options if one.placeholder}
    return sum(
        not one.startswith("-") and last not in valued
        for last, one in zip(["", *before], before, strict=False)
    )


def gpus() -> list[str]:
    """Names that `--target` takes."""
    from tritonsmith import configs

    return sorted({"native", "all", *configs.load("gpu-targets")["targets"]})


def _values(option: Option, start: str, before: Sequence[str]) -> Iterable[str]:
    """The values of an option; of one with commas, after those that are typed already."""
    done, comma, _ = start.rpartition(",")
    known = _KNOWN.get(option.placeholder)
    values = known() if known else []
    if option.placeholder == "PASS":
        values = next(filter(None, map(_dumped, before)), values)
    return (f"{done}{comma}{value}" for value in values)


def _dumped(word: str) -> list[str]:
    """The names of the passes of a dump; empty if the word is no folder of one."""
    from tritonsmith.errors import SmithError
    from tritonsmith.passes.dump import index

    if not Path(word, index.FILE).is_file():
        return []
    try:
        return sorted({dump.argument for dump in index.read(Path(word)).dumps if dump.argument})
    except SmithError:
        return []


def _environments() -> list[str]:
    from tritonsmith.envs import settings

    return [name for name, _, _ in settings.available()]


def _passes() -> list[str]:
    from tritonsmith import configs

    return sorted(configs.load("pass-names")["passes"])


def _checks() -> list[str]:
    from tritonsmith.doctor import registry

    ids = [check.id for check in registry.ALL]
    return sorted({*ids, *(one.partition(".")[0] for one in ids)})


def _spellings(option: Option) -> Iterable[str]:
    return (option.flag, f"--no-{option.flag[2:]}") if option.kind == "bool | None" else (option.flag,)


_KNOWN: dict[str, Callable[[], list[str]]] = {
    "ENV": _environments,
    "GPU": gpus,
    "PASS": _passes,
    "CHECKS": _checks,
}
