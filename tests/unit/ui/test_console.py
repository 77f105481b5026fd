from __future__ import annotations

import pytest

from tritonsmith.ui import console


def test_answers_and_remarks_go_their_own_ways(capsys: pytest.CaptureFixture[str]) -> None:
    console.out().print("answer")
    console.note("a remark about [toolchain] and [/x]")
    console.warn("a warning about [toolchain]")
    seen = capsys.readouterr()
    assert seen.out == "answer\n"
    assert seen.err == "note: a remark about [toolchain] and [/x]\nwarning: a warning about [toolchain]\n"


def test_names_of_emojis_and_long_lines_stay_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    text = f"cuda:100:32 /x:/y:{'long ' * 100}end"
    console.out().print(text)
    console.err().print(text)
    assert capsys.readouterr() == (f"{text}\n", f"{text}\n")
