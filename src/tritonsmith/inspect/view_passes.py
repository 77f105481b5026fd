"""Look around in a dump: the viewer that `passes.show DIR` opens in a terminal.

It has the rows, counts and search of the page and of `passes.list`, and the lines of `passes.diff`. Textual
draws it. One thread reads and compares texts, so that keys are answered meanwhile; of a text, only the lines
on the screen are drawn.
"""

from __future__ import annotations

import asyncio
import queue
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container, Vertical
from textual.events import Click, Key, Resize
from textual.geometry import Size
from textual.message import Message
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Input, Static

from tritonsmith.compiler.dump import pass_runs
from tritonsmith.compiler.dump.index import DumpIndex
from tritonsmith.core.errors import FactError, SmithError
from tritonsmith.core.redact import printable
from tritonsmith.core.ui import console
from tritonsmith.inspect import override, pipeline_table, show
from tritonsmith.inspect.report import write
from tritonsmith.inspect.show import SourceLine
from tritonsmith.inspect.show_passes import DumpView, View, ViewText, printable_lines

_WIDE = 120  # columns, from which on the list is beside the text, not above it
_PLAIN = 2000  # characters of a line, from which on it has no colours: some types have a hundred thousand


class _Worker(threading.Thread):
    """A thread that runs the newest job; jobs that have not begun by then are dropped."""

    # Not a thread of Textual's pool: leaving would wait for its comparison, which may take seconds.

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self._jobs: queue.SimpleQueue[Callable[[], object]] = queue.SimpleQueue()
        self.start()

    def put(self, job: Callable[[], object]) -> None:
        """Add a job, which then is the newest."""
        self._jobs.put(job)

    def run(self) -> None:
        """Run jobs for ever."""
        while True:
            job = self._jobs.get()
            while not self._jobs.empty():
                job = self._jobs.get()
            job()


class LinePane(ScrollView, can_focus=True):
    """Lines, one of which is the cursor's."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "move(-1)"),
        Binding("down,j", "move(1)"),
        Binding("pageup", "page(-1)"),
        Binding("pagedown,space", "page(1)"),
        Binding("home,g", "move(-1000000000)"),
        Binding("end,G", "move(1000000000)"),
        Binding("left", "sideways(-8)"),
        Binding("right", "sideways(8)"),
    ]

    @dataclass
    class Moved(Message):
        """The cursor is on another line.

        Attributes:
            pane: the pane.
        """

        pane: LinePane

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.cursor = 0
        self.count = 0
        self._draw: Callable[[int], Text] = lambda _: Text()

    # A text of a hundred thousand lines costs what the screen shows of it: a line is drawn when its row is.

    def fill(self, count: int, width: int, draw: Callable[[int], Text], cursor: int = 0) -> None:
        """Show other lines.

        Args:
            count: the number of lines.
            width: the width of the longest, in columns.
            draw: returns a line by its place.
            cursor: the place of the cursor.
        """
        self.count, self._draw = count, draw
        self.virtual_size = Size(width, count)
        self.cursor = max(0, min(cursor, count - 1))
        self._follow()
        self.refresh()

    def move_to(self, place: int) -> None:
        """Move the cursor, as far as there are lines."""
        before, self.cursor = self.cursor, max(0, min(place, self.count - 1))
        self._follow()
        self.refresh()
        if self.cursor != before:
            self.post_message(self.Moved(self))

    def _follow(self) -> None:
        height, top = self.scrollable_content_region.height, round(self.scroll_y)
        # A jump puts the line into the middle; a step scrolls no farther than it must.
        if not top - height < self.cursor < top + 2 * height:
            top = self.cursor - height // 2
        else:
            top = min(self.cursor, max(top, self.cursor - height + 1))
        self.scroll_to(y=top, animate=False, force=True, immediate=True)

    def on_resize(self, _event: Resize) -> None:
        """Keep the cursor on the screen."""
        self._follow()

    def on_click(self, event: Click) -> None:
        """Move the cursor to the line that was clicked."""
        self.move_to(round(self.scroll_y) + event.y)

    def action_move(self, lines: int) -> None:
        """Move the cursor by some lines."""
        self.move_to(self.cursor + lines)

    def action_page(self, pages: int) -> None:
        """Move the cursor by some screens."""
        self.move_to(self.cursor + pages * max(1, self.scrollable_content_region.height - 1))

    def action_sideways(self, columns: int) -> None:
        """Scroll to the left or to the right."""
        self.scroll_to(x=self.scroll_x + columns, animate=False, immediate=True)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        # Styles of a line come before those of the pane, which only fill what the line leaves open.
        left, top = self.scroll_offset
        width, place = self.scrollable_content_region.width, y + top
        if place >= self.count:
            return Strip.blank(width, self.rich_style)
        strip = Strip(self._draw(place).render(self.app.console)).crop_extend(left, left + width, None)
        if place == self.cursor:
            # Reversed in the pane with the focus: that can be seen without colours, too.
            marked = "reverse" if self.has_focus else "bold underline"
            strip = strip.apply_style(self.app.console.get_style(marked))
        return strip.apply_style(self.rich_style)


_KEYS = """\
  j k, up down   next, previous line of the pane; in the list: pass
  n p            next, previous pass that changed something
  [ ]            previous, next kernel of the dump
  u              hide passes that changed nothing, or show them
  tab            go to the next pane
  enter          in the list: go to the text; in the text: source
  space, pgup    forward and back by a screen; g G: first, last line
  left right     scroll sideways
  d              the diff, the output, or the input of the pass
  /              search all passes; then n N: next, previous match
                 escape ends the search
  s              the line of Python that this line comes from
  e              open that line in $VISUAL or $EDITOR
  q, ^C          quit"""
_HINTS = "n p changed  / search  d text  s source  e edit  u hide  ? keys  q quit"


class KeysScreen(ModalScreen[None]):
    """The list of keys; any key closes it."""

    def compose(self) -> ComposeResult:
        """Yield the list."""
        yield Static(Text(_KEYS), id="keys")

    def on_key(self, event: Key) -> None:
        """Close the list."""
        event.stop()
        # A second key may have been sent here before the first one closed the list.
        if self.is_current:
            self.dismiss()


class PassViewer(App[None]):
    """The viewer of a dump."""

    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-stacked"), (_WIDE, "-beside")]  # noqa: RUF012 - as Textual declares it
    # The terminal's own colours, whatever they are: its user has chosen them.
    CSS = """
    Screen, Static, Container, LinePane, Input { background: ansi_default; color: ansi_default; }
    LinePane { scrollbar-size: 0 1; scrollbar-background: ansi_default; scrollbar-color: ansi_bright_black;
        scrollbar-background-hover: ansi_default; scrollbar-color-hover: ansi_bright_black;
        scrollbar-background-active: ansi_default; scrollbar-color-active: ansi_blue;
        scrollbar-corner-color: ansi_default; }
    #head, #title, #place, #status { height: 1; text-wrap: nowrap; text-overflow: ellipsis; }
    #title, #place { text-style: reverse; }
    #panes { height: 1fr; }
    #right { height: 1fr; width: 1fr; }
    #text { height: 1fr; }
    #place, #source { display: none; }
    #source { height: 35%; }
    .source #place, .source #source { display: block; }
    .-stacked #panes { layout: vertical; }
    .-stacked #list { height: 30%; }
    .-beside #panes { layout: horizontal; }
    .-beside #right { padding-left: 1; }
    .-beside #list { width: 40%; max-width: 76; }
    #search { display: none; border: none; height: 1; padding: 0; }
    KeysScreen { align: center middle; }
    #keys { width: auto; height: auto; border: solid ansi_blue; border-title-align: center; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit"),
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("n", "next"),
        Binding("p", "changed(-1)"),
        Binding("N", "match(-1)"),
        Binding("left_square_bracket", "kernel(-1)"),
        Binding("right_square_bracket", "kernel(1)"),
        Binding("u", "unchanged"),
        Binding("d", "view"),
        Binding("s", "source"),
        Binding("enter", "enter"),
        Binding("e", "edit"),
        Binding("slash", "search"),
        Binding("escape", "escape"),
        Binding("question_mark", "keys"),
    ]

    @dataclass
    class Ready(Message):
        """A job of the thread is done.

        Attributes:
            rest: the part of the job that draws, which Textual's own thread has to do.
        """

        rest: Callable[[], None]

    def __init__(self, index: DumpIndex, kernel: str = "") -> None:
        super().__init__(ansi_color=True)
        # An index may be anyone's, and list kernels that have no passes.
        self._index, self._kernels = index, [entry for entry in index.kernels if index.of(entry.name)]
        if not self._kernels:
            raise FactError("this dump has no passes", where=index.folder)
        names = [entry.name for entry in self._kernels]
        self._number = names.index(kernel) if kernel in names else 0
        self._texts, self._counts = _Worker(), _Worker()
        self._hiding = False
        self._preferred: View = "diff"
        self._start()

    def _start(self) -> None:
        """Begin with a kernel."""
        self.model = DumpView(self._index, self._kernels[self._number])
        self.listed = list(range(len(self.model.rows)))
        self.place = self.model.opening()
        self.view = self._preferred
        self.shown: ViewText | None = None
        self.sought = ""
        self.matches: dict[int, tuple[int, int]] = {}
        self.origin: SourceLine | None = None
        self._moved = False

    def compose(self) -> ComposeResult:
        """Yield the panes."""
        yield Static(id="head")
        with Container(id="panes"):
            yield LinePane("list")
            with Vertical(id="right"):
                yield Static(id="title")
                yield LinePane("text")
                yield Static(id="place")
                yield LinePane("source")
        yield Static(id="status")
        yield Input(id="search", placeholder="search all passes", select_on_focus=True)

    def on_mount(self) -> None:
        """Show the first pass."""
        if not self.is_headless:
            # An exception from a signal's handler would end the loop, and leave the terminal as it is.
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    asyncio.get_running_loop().add_signal_handler(number, self.action_interrupt)
        self._open_kernel()
        self._pane("list").focus()

    def _pane(self, name: str) -> LinePane:
        return self.query_one(f"#{name}", LinePane)

    def _write(self, name: str, text: str, style: str = "") -> None:
        self.query_one(f"#{name}", Static).update(Text(printable(text), style))

    def _say(self, text: str = "") -> None:
        """Show a message in place of the hints, or the hints."""
        self._write("status", text or _HINTS, "bold" if text else "dim")

    def _open_kernel(self) -> None:
        kernel, index = self.model.kernel, self._index
        number, of = self._number + 1, len(self._kernels)
        several = f" ({number} of {of} kernels)" if of > 1 else ""
        reason = kernel.error.partition("\n")[0]
        failed = f"  {kernel.failed} failed: {reason}" if kernel.failed else ""
        counts, by = pass_runs.totals(index, kernel.name), f"  Triton {index.triton}" if index.triton else ""
        head = f"{kernel.name} {kernel.target}{several}{failed}  {counts}{by}"
        self._write("head", head, "bold red" if failed else "bold")
        self._say()
        self._fill_list()
        self._load()
        model = self.model

        def counted() -> None:
            if self.model is model:
                # Which pass changed much is known only now; whoever has chosen one by then stays there.
                opening = model.opening()
                if not self._moved and opening != self.place:
                    self._select(opening)
                    self._moved = False
                self._fill_list()

        def count() -> Callable[[], None]:
            model.counted = model.count()
            return counted

        self._do(self._counts, count)

    # A job has two parts, as only Textual's own thread may change what it draws. The second part checks that
    # the user has not gone elsewhere in the meantime.

    def _do(self, worker: _Worker, job: Callable[[], Callable[[], None]]) -> None:
        """Let a thread run a job, and run here what it returns; an error goes to the last line."""

        def run() -> None:
            try:
                rest = job()
            except Exception as error:  # noqa: BLE001 - raised below, in the thread that shows it
                rest = partial(self._fail, error)
            self.post_message(self.Ready(rest))

        worker.put(run)

    def on_pass_viewer_ready(self, message: Ready) -> None:
        """Show the result of a job."""
        message.rest()

    def _fail(self, error: Exception) -> None:
        """Show why a job failed; an error of our own ends the program, as elsewhere."""
        if not isinstance(error, (SmithError, OSError)):
            raise error
        self._say(error.line if isinstance(error, SmithError) else str(error))

    # The list.

    def _fill_list(self) -> None:
        rows = self.model.rows
        self.listed = [
            place
            for place, row in enumerate(rows)
            if not (self._hiding and row.unchanged) or place == self.place
        ]
        pane = self._pane("list")
        pane.fill(len(self.listed), 0, self._list_line, self.listed.index(self.place))

    def _list_line(self, at: int) -> Text:
        place = self.listed[at]
        row, run = self.model.rows[place], self.model.rows[place].run
        width = self._pane("list").scrollable_content_region.width
        cells, style = ["", "", ""], ""
        if run:
            dump = run.dump
            counted = self.model.counted.get(dump.number)
            lines, took = pipeline_table.changed_lines(dump, counted), pipeline_table.pass_time(dump)
            cells = [str(dump.number), lines, took]
            style = pipeline_table.row_style(self.model.kernel, dump) + (" italic" if dump.inside else "")
        if self.sought:
            before, after = self.matches.get(place, (0, 0))
            cells[2] = f"{before}\u2192{after}" if before or after else ""
        # While a search is on, its counts take the place of the time.
        name = max(8, width - 37)
        # In columns, as `passes.list` has them; a name that is too long ends with an ellipsis.
        text = Text(f"{cells[0]:>4} {row.stage[:8]:8} ", style)
        shortened = Text(printable(row.name))
        shortened.truncate(name, overflow="ellipsis", pad=True)
        return text.append_text(shortened).append(f" {cells[1]:>12} {cells[2]:>9}")

    def on_line_pane_moved(self, message: LinePane.Moved) -> None:
        """Show the pass, or the source of the line, that the cursor is on now."""
        if message.pane.id == "list":
            self._moved = True
            self.view = self._preferred
            self.place = self.listed[message.pane.cursor]
            self._load()
        elif message.pane.id == "text" and self.has_class("source"):
            self._find_source()

    def _select(self, place: int) -> None:
        """Select a row, which may be hidden."""
        self.place, self._moved = place, True
        self._fill_list()
        self._load()

    def action_changed(self, direction: int) -> None:
        """Go to the next or previous pass that changed something."""
        self.view = self._preferred
        rows = self.model.rows
        places = range(self.place + direction, len(rows) if direction > 0 else -1, direction)
        place = next((place for place in places if rows[place].changed), None)
        if place is None:
            self._say(f"no {'later' if direction > 0 else 'earlier'} pass changed something")
        else:
            self._select(place)

    def action_next(self) -> None:
        """Go to the next match of a search, or else to the next pass that changed something."""
        if self.sought:
            self.action_match(1)
        else:
            self.action_changed(1)

    def action_unchanged(self) -> None:
        """Hide passes that changed nothing, or show them."""
        self._hiding = not self._hiding
        self._fill_list()
        self._say("passes that changed nothing are hidden" if self._hiding else "")

    def action_kernel(self, direction: int) -> None:
        """Go to another kernel of the dump."""
        if len(self._kernels) == 1:
            self._say("this dump has one kernel")
            return
        # Around the end: with two kernels, either key leads to the other one.
        self._number = (self._number + direction) % len(self._kernels)
        self._start()
        self._open_kernel()

    # The text of a pass.

    def _load(self, then: Callable[[], None] | None = None) -> None:
        """Show the text of the selected row, and go on from there."""
        # The old text stays on the screen until the new one is there: an empty pane would flicker.
        model, place, view = self.model, self.place, self.view
        self.shown = None
        self._title("reading")
        self._say()

        def filled(text: ViewText) -> None:
            if (model, place, view) != (self.model, self.place, self.view):
                return
            self.shown = text
            self._title(text.about)
            width = max(map(len, text.lines), default=0)
            self._pane("text").fill(len(text.lines), width, partial(self._text_line, text))
            if then:
                then()
            elif self.has_class("source"):
                self._find_source()

        def load() -> Callable[[], None]:
            try:
                text = model.text(place, view)
            except FactError as error:  # a dump that is damaged, or that is being written anew
                text = ViewText(error.what, printable_lines(str(error)))
            return lambda: filled(text)

        self._do(self._texts, load)

    def _title(self, about: str) -> None:
        row = self.model.rows[self.place]
        words = [row.name, about]
        if row.run:
            counted = self.model.counted.get(row.run.dump.number)
            words[0] = f"{row.run.dump.number} {words[0]}"
            words += [pipeline_table.changed_lines(row.run.dump, counted)]
            words += [pipeline_table.changed_operations(counted)]
        self._write("title", "  ".join(filter(None, words)))

    def _text_line(self, text: ViewText, place: int) -> Text:
        line = text.lines[place]
        mark = line[:1] if text.is_diff else ""
        if mark in ("+", "-", "@"):
            drawn = console.coloured_diff([line])
            drawn.rstrip()
        else:
            drawn = show.highlighted(line, "ttir") if len(line) < _PLAIN else Text(line)
        drawn.end = ""
        if self.sought:
            drawn.highlight_words([self.sought], "black on yellow")
        return drawn

    def action_view(self) -> None:
        """Show the diff, the output or the input."""
        following: dict[View, View] = {"diff": "after", "after": "before", "before": "diff"}
        self._preferred = self.view = following[self.view]
        self._load()

    # The search.

    def action_search(self) -> None:
        """Ask for a text."""
        self._ask(True)
        # Not `Input.focus`, which comes into effect later: the next keys belong to the text.
        self.screen.set_focus(self.query_one("#search", Input))

    def _ask(self, asking: bool) -> None:
        """Let the input replace the hints, or the other way round."""
        self.query_one("#search", Input).display = asking
        self.query_one("#status", Static).display = not asking

    def action_escape(self) -> None:
        """End the search."""
        self.sought, self.matches = "", {}
        self._end_input()
        self._fill_list()
        self._pane("text").refresh()

    def _end_input(self) -> None:
        if self.query_one("#search", Input).display:
            self._ask(False)
            self._pane("list").focus()
        self._say()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for the text in all passes."""
        text, model = event.value, self.model
        self._end_input()
        if not text:
            self.action_escape()
            return

        def matched(matches: dict[int, tuple[int, int]]) -> None:
            if self.model is not model:
                return
            self.sought, self.matches = text, matches
            self._fill_list()
            self._pane("text").refresh()
            if matches:
                self.action_match(1, stay=True)
            else:
                self._say(f"no pass has {text!r}; locations are not searched")

        def search() -> Callable[[], None]:
            matches = model.matches(text)
            return lambda: matched(matches)

        self._say(f"searching {text!r}")
        self._do(self._counts, search)

    def action_match(self, direction: int, *, stay: bool = False) -> None:
        """Go to the next or previous match, in this pass or in another one.

        Args:
            direction: 1 or -1.
            stay: the search is new: the line of the cursor may be the match.
        """
        if not self.sought:
            self._say("search for a text first: /")
            return
        # First the matches of this text, which may be a diff, then the passes whose whole texts have some.
        lines = [place for place, line in enumerate(self._lines()) if self.sought in line]
        at = self._pane("text").cursor
        ahead = [place for place in lines if (place - at) * direction > 0 or (stay and place == at)]
        if self.place in self.matches and ahead:
            self._pane("text").move_to(ahead[0] if direction > 0 else ahead[-1])
            self._say_match()
            return
        places = [place for place in self.matches if (place - self.place) * direction > 0]
        if stay:
            # The selected pass comes first, as a diff shows only a part of its texts. A search that was
            # begun behind all matches goes to the first one.
            here = [self.place] if self.place in self.matches else []
            places = [*here, *places] or list(self.matches)
        if not places:
            self._say(f"no {'later' if direction > 0 else 'earlier'} pass has {self.sought!r}")
            return
        self.view = self._preferred
        self.place, self._moved = (places[0] if direction > 0 else places[-1]), True
        self._fill_list()
        self._load(lambda: self._enter_match(direction))

    def _lines(self) -> Sequence[str]:
        return self.shown.lines if self.shown else ()

    def _enter_match(self, direction: int) -> None:
        """Go to the first match of a text that was just loaded; a diff without one gives way to the text."""
        lines = [place for place, line in enumerate(self._lines()) if self.sought in line]
        if lines:
            self._pane("text").move_to(lines[0] if direction > 0 else lines[-1])
            self._say_match()
        elif self.view == "diff":
            self.view = "after" if self.matches.get(self.place, (0, 0))[1] else "before"
            self._load(lambda: self._enter_match(direction))

    def _say_match(self) -> None:
        passes = "1 pass" if len(self.matches) == 1 else f"{len(self.matches)} passes"
        self._say(f"{self.sought!r}: in {passes}; n N next, previous; escape ends")

    # The source.

    def action_enter(self) -> None:
        """Go from the list to the text, and from a line of the text to its source."""
        if self._pane("list").has_focus:
            self._pane("text").focus()
        elif not self.has_class("source"):
            self.action_source()

    def action_source(self) -> None:
        """Show the Python that the line comes from, or hide it."""
        self.toggle_class("source")
        if self.has_class("source"):
            self._find_source()

    def _find_source(self, then: Callable[[], None] | None = None) -> None:
        """Find the line of Python behind the line of the cursor."""
        model, place, view = self.model, self.place, self.view
        if not self.shown:
            return

        def located(origins: Sequence[SourceLine | None]) -> None:
            if (model, place, view) != (self.model, self.place, self.view):
                return
            at = self._pane("text").cursor
            # The head of a hunk has no line of its own: its first line stands for it.
            at += bool(self.shown and self.shown.is_diff and self._lines()[at].startswith("@@"))
            self.origin = origins[at] if at < len(origins) else None
            self._show_source()
            if then:
                then()

        def locate() -> Callable[[], None]:
            origins = model.origins(place, view)
            return lambda: located(origins)

        self._do(self._texts, locate)

    def _show_source(self) -> None:
        pane, origin = self._pane("source"), self.origin
        lines = python_lines(origin.file) if origin else None
        if origin is None:
            self._write("place", "this line comes from no line of Python")
        elif lines is None:
            self._write("place", f"{origin.file}:{origin.number}  (this file is not here)")
        else:
            self._write("place", f"{origin.file}:{origin.number}")
        shown = lines or ()

        def draw(place: int) -> Text:
            return Text(f"{place + 1:>5} {shown[place]}", end="")

        pane.fill(len(shown), max(map(len, shown), default=0) + 6, draw, origin.number - 1 if origin else 0)

    def action_edit(self) -> None:
        """Open the line of Python in the user's editor."""
        # In the source, the user may have moved on from the line that the text led to.
        source = self._pane("source")
        if source.has_focus and self.origin:
            self._edit(SourceLine(self.origin.file, source.cursor + 1))
        else:
            self._find_source(lambda: self._edit(self.origin))

    def _edit(self, line: SourceLine | None) -> None:
        if line is None:
            self._say("this line comes from no line of Python")
        elif python_lines(line.file) is None:
            self._say(f"not here: {line.file}")
        else:
            try:
                with self.suspend():
                    override.open_at(Path(line.file), line.number)
            except SmithError as error:
                self._fail(error)
            python_lines.cache_clear()  # it may have been changed
            self._show_source()

    # The program.

    def action_keys(self) -> None:
        """Show the list of keys."""
        self.push_screen(KeysScreen())

    def action_interrupt(self) -> None:
        """End as ^C ends a program."""
        self.exit(return_code=130)


@lru_cache(16)
def python_lines(file: str) -> Sequence[str] | None:
    """Return the lines of a Python file that a dump names; None if it is not on this machine."""
    text = write.read_python([file]).get(file)
    return None if text is None else printable_lines(text)


def view_dump(index: DumpIndex, kernel: str = "") -> int:
    """Run the viewer until the user quits, and return the exit code.

    Args:
        index: the dump.
        kernel: the kernel to begin with; the first one if empty.

    Raises:
        FactError: the dump has no passes.
    """
    viewer = PassViewer(index, kernel)
    viewer.run()
    return viewer.return_code or 0
