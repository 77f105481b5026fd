"""The command line: each task parses its flags, calls one use case, and prints the result."""

import gc
import importlib
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from invoke.collection import Collection
from invoke.context import Context
from invoke.parser.context import ParserContext
from invoke.tasks import Task

from tritonsmith.cli import commands, interruptible, modes
from tritonsmith.cli.tasks.option_fields import OptionTask

# What a start allocates stays to the end. Scanning it again and again takes a tenth of the time of a build
# that has nothing to do.
gc.set_threshold(50_000)


class _Tasks(Mapping[str, OptionTask]):
    """The tasks by name; one is imported when it is looked up."""

    def __init__(self) -> None:
        self._imported: dict[str, OptionTask] = {}

    def __getitem__(self, name: str) -> OptionTask:
        if name not in self._imported:
            module, _, function = commands.EVERY[name].task.partition(":")
            # At ^C here, Invoke would end without a message.
            with interruptible():
                task: OptionTask = getattr(importlib.import_module(f"{__name__}.{module}"), function)
            # A task cannot know its name itself: it is that of the registry, and help and `command_line` go
            # by it.
            task.typed = name
            self._imported[name] = task
        return self._imported[name]

    def __iter__(self) -> Iterator[str]:
        return iter(commands.EVERY)

    def __len__(self) -> int:
        return len(commands.EVERY)


class Commands(Collection):
    """The commands, and the tasks that carry out their modes, which are not listed.

    Attributes:
        every: all tasks, by their names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.every = _Tasks()
        # Invoke lists what is in `tasks`, by name and docstring. `add_task` would make a collection of each
        # part of a name with a dot.
        self.tasks.update({name: _listed(command.purpose) for name, command in commands.COMMANDS.items()})

    def to_contexts(self, ignore_unknown_help: bool | None = None) -> list[ParserContext]:
        """See `invoke.Collection`."""
        # Invoke's own parser wants all tasks, which imports all of them; the program asks for those of its
        # line.
        return self.contexts_of(self.every, ignore_unknown_help)

    def contexts_of(
        self, words: Iterable[str], ignore_unknown_help: bool | None = None
    ) -> list[ParserContext]:
        """Return the parser contexts of the tasks among these words, of which no other task is imported.

        Args:
            words: of a command line; old names count, too.
            ignore_unknown_help: see `invoke.Collection.to_contexts`.
        """
        contexts = []
        for name in dict.fromkeys(modes.RENAMED.get(word, word) for word in words):
            if name in commands.EVERY:
                old_names = [old for old, new in modes.RENAMED.items() if new == name]
                arguments = self.every[name].get_arguments(ignore_unknown_help=ignore_unknown_help)
                contexts.append(ParserContext(name=name, aliases=old_names, args=arguments))
        return contexts

    def subcollection_from_path(self, path: str) -> Collection:
        """See `invoke.Collection`: `--list passes` lists the commands that begin with `passes.`."""
        members = {name: task for name, task in self.tasks.items() if name.startswith(f"{path}.")}
        if not members:
            raise KeyError(path)
        group = Collection(path)
        group.tasks.update({name.removeprefix(f"{path}."): task for name, task in members.items()})
        return group

    def task_with_config(self, name: str | None) -> tuple[Any, dict[str, Any]]:
        """See `invoke.Collection`; an old name is taken, too."""
        task = self.every.get(modes.RENAMED.get(name or "", name or ""))
        return (task, self.configuration()) if task else super().task_with_config(name)


def _listed(purpose: str) -> Task[Any]:
    """Return a task that is listed, and never run, in place of one that is not imported."""

    def body(_context: Context) -> None:
        """Stand in the list."""

    body.__doc__ = purpose
    return Task(body)


namespace = Commands()

__all__ = ["namespace"]
