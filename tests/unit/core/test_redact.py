from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tritonsmith.core import redact

KEY = """-----BEGIN OPENSSH PRIVATE KEY-----
b3BlbnNzaC1rZXktdjEAAAAA
-----END OPENSSH PRIVATE KEY-----"""


_ENDS = ("PASS", "PAT", "PWD", "CRED", "CREDS", "BEARER", "SESSION", "SIGNATURE")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://u:canary@proxy:8080 x", "http://***@proxy:8080 x"),
        ("http://u:can@ary@proxy/x", "http://***@proxy/x"),
        (
            "fatal: unable to access 'https://u:canary@h/r.git/': 403",
            "fatal: unable to access 'https://***@h/r.git/': 403",
        ),
        ("https://h/r.git?private_token=canary&ref=main", "https://h/r.git?private_token=***&ref=main"),
        (
            "https://h/a?X-Amz-Date=1&X-Amz-Signature=canary#x",
            "https://h/a?X-Amz-Date=***&X-Amz-Signature=***#x",
        ),
        ("https://h/a?sv=2024&sig=canary%2B/A=, gone", "https://h/a?sv=2024&sig=***, gone"),
        ("TRITON_FOO_TOKEN=canary, X=1", "TRITON_FOO_TOKEN=***, X=1"),
        ("env 'A=1' HF_TOKEN='can ary' git fetch", "env 'A=1' HF_TOKEN=*** git fetch"),
        ("-DMY_SECRET:STRING=canary -DX=1", "-DMY_SECRET:STRING=*** -DX=1"),
        ('set(MY_PASSWORD "can\\"ary" CACHE STRING "")', 'set(MY_PASSWORD *** CACHE STRING "")'),
        ("MY_TOKEN_2=canary token=fp32canary", "MY_TOKEN_2=*** token=***"),
        ("AWS_SECRET_ACCESS_KEY=canary", "AWS_SECRET_ACCESS_KEY=***"),
        ('{"HF_TOKEN": "canary", "x": "1"}', '{"HF_TOKEN": "***", "x": "1"}'),
        ("{'password': 'canary'}", "{'password': '***'}"),
        ("curl --oauth-token canary x", "curl --oauth-token *** x"),
        ("--password=canary x", "--password=*** x"),
        ("Authorization: Bearer canary", "Authorization: ***"),
        ("PRIVATE-TOKEN: canary", "PRIVATE-TOKEN: ***"),
        ("Set-Cookie: a=canary; Path=/", "Set-Cookie: ***"),
        ("at ghp_" + "a1" * 18, "at ***"),
        ("github_pat_" + "A1_" * 20, "***"),
        ("hf_" + "aB" * 17, "***"),
        ("AKIA" + "Z9" * 8, "***"),
        ("glpat-" + "x-y_" * 5, "***"),
        ("sk-proj-" + "a1" * 20, "***"),
        ("xoxb-1234-5678-abcdefghijkl", "***"),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl", "***"),
        (KEY, "-----BEGIN OPENSSH PRIVATE KEY----- *** -----END OPENSSH PRIVATE KEY-----"),
    ],
)
def test_a_secret_is_hidden(text: str, shown: str) -> None:
    hidden = redact.hidden(text)
    assert hidden == shown
    assert redact.hidden(hidden) == hidden


@pytest.mark.parametrize(
    "text",
    [
        "git@github.com:a/b, https://x/y@1.0",
        "https://github.com/triton-lang/triton/pull/9776?diff=split",
        "sha256 is 3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855f",
        "commit 634158b1f7a1c0a3b1de2ff2b8e1a0e3c0a7d4b2",
        "--signature '*fp32, *fp32, i32' --constexpr KEY_DIM=128,NUM_TOKENS=4096,HAS_KEY=true",
        "%0 = ttg.async_wait %token {num = 0 : i32} : !ttg.async.token",
        "error: unexpected token: 'x'",
        "TOKENIZERS_PARALLELISM=false CUDA_DEVICE_ORDER=PCI_BUS_ID LLVM_PASS_PLUGIN_PATH=/x/y.so",
        "lambda key=x: tokens=y, monkey=z",
        "--signature 'x=*fp32,sorted_token_ids_ptr=*i32,TOKEN_TYPE=constexpr,next_token=*ki64:16'",
        '{"sorted_token_ids_ptr": "*i32", "PAD_TOKEN_ID": "constexpr", "token": "*bf16"}',
        "GITHUB_TOKEN_FILE=/run/secrets-of/me",
        "/home/me/sk-learn-experiments-2024-kernels/llvm",
        "task-0123456789-0123456789-0123456789",
        "@triton.jit",
        "{'key': 'fp16', 'hash': 'abc'}",
        "invoke kernel.compile matmul.py --target h100 --env dev",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact.hidden(text) == text


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [
        ("TRITON_FOO_TOKEN", "canary", "***"),
        ("AUTH", "12345678901", "***"),
        ("ssh_key", "canary", "***"),
        ("TRITON_CACHE_DIR", "/x", "/x"),
        ("TOKENIZERS_PARALLELISM", "canary", "canary"),
        ("PWD", "/x", "/x"),
        *((f"TRITON_X_{end}", "canary", "***") for end in _ENDS),
        ("FIRST_PASS", "3", "3"),
        ("pass_name", "canary", "canary"),
        ("kernel_signature", "*fp32", "*fp32"),
        ("HTTPS_PROXY", "http://u:canary@p", "http://***@p"),
        ("HAS_TOKEN", "1", "1"),
    ],
)
def test_a_variable_is_told_by_its_name(name: str, value: str, shown: str) -> None:
    assert redact.variable(name, value) == shown


@pytest.mark.parametrize("end", _ENDS)
def test_a_short_name_is_one_in_a_text(end: str) -> None:
    for text in ("X_{}=canary", "-DX_{}:STRING=canary", '{{"X_{}": "canary"}}', "set(X_{} canary)"):
        assert "canary" not in redact.hidden(text.format(end)), text
    assert redact.hidden(f"x_{end.lower()}=canary") == f"x_{end.lower()}=canary"


def test_data_keep_their_form() -> None:
    content = {
        "source": "https://u:canary@h/r.git",
        "settings": {"cmake-args": ("-DA_TOKEN=canary", "-DB=1"), "jobs": 3, "x": None},
        "env": {"HF_TOKEN": "canary", "secret": {"commit": "634158b1"}},
        "key": "634158b1f7a1c0a3",
    }
    assert redact.data(content) == {
        "source": "https://***@h/r.git",
        "settings": {"cmake-args": ["-DA_TOKEN=***", "-DB=1"], "jobs": 3, "x": None},
        "env": {"HF_TOKEN": "***", "secret": {"commit": "634158b1"}},
        "key": "634158b1f7a1c0a3",
    }


PIECES = (
    *("A_TOKEN=abc", "Authorization: Bearer x", "?token=abc", "&sig=abc", "://me:abc@h/", "--password abc"),
    *('set(X_SECRET "a b")', "ghp_" + "a" * 30, "eyJhbGciOiJI.eyJzdWIiOiIx.c", "commit", "key"),
    *("'", '"', "\\", " ", "\n", ",", "x", "/", ":", "{", "=1"),
)
TEXTS = st.lists(st.sampled_from(PIECES), max_size=12).map("".join)


@given(st.dictionaries(TEXTS, TEXTS, max_size=3))
def test_hidden_json_is_json_still(content: dict[str, str]) -> None:
    assert isinstance(json.loads(redact.hidden(json.dumps(content))), dict)


def test_a_private_key_that_comes_line_by_line() -> None:
    hide = redact.SecretLines()
    lines = [hide(line) for line in ("before", *KEY.splitlines(), "after")]
    assert lines[0] == "before"
    assert lines[-1] == "after"
    assert "b3Blbn" not in "".join(lines)


@pytest.mark.parametrize(
    "text",
    [
        "--" * 100_000 + "token",
        "a-" * 100_000 + "token",
        "?a" * 100_000 + "token",
        "://@" * 50_000,
        "A='" * 60_000 + "token",
        "token=" * 40_000,
        '"token":"' * 20_000,
        "eyJ" * 60_000,
        "-----BEGIN " * 20_000,
    ],
    ids=lambda text: text[:12],
)
def test_a_hostile_line_takes_no_longer_than_another(text: str) -> None:
    """What is quadratic in one of these takes hours."""
    assert len(redact.hidden(text)) <= len(text) + 8


def test_a_megabyte_without_a_secret_is_the_same_object() -> None:
    text = re.sub("x", "y", "ptx " * 250_000)
    assert redact.hidden(text) is text
