"""When the tool calls of a completion happened."""

from __future__ import annotations

import math

import pytest

import torchpref as tp
from torchpref.rl import trace_of_messages
from torchpref.rl.messages import Call

END = 2


class Tokenizer:
    eos_token_id = END


def call(*names: str, text: str = "") -> dict:
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"type": "function", "function": {"name": n}} for n in names],
    }


def tool(text: str) -> dict:
    return {"role": "tool", "name": "x", "content": text}


FINAL = {"role": "assistant", "content": "done"}
#: Three tokens and an end, answers, two tokens and an end, an answer, one token and an end.
CHAT = [call("look", "go"), tool("wall"), tool("ok"), call("open"), tool("{'error': 'Tool open not found.'}"), FINAL]
MERGED = [9, 9, 9, END, 7, 7, 7, END, 7, 9, 9, END, 7, END, 9, END]
EACH = [9, 9, 9, END, 7, END, 7, END, 7, 9, 9, END, 7, END, 9, END]


def test_turns_and_calls_without_tokens() -> None:
    found = trace_of_messages(CHAT)
    assert found.turns == 3 and not found.truncated
    assert [(one.name, one.turn, one.failed) for one in found.calls] == [
        ("look", 1, False),
        ("go", 1, False),
        ("open", 2, True),
    ]
    assert math.isnan(found.tokens) and all(math.isnan(one.tokens) for one in found.calls)
    assert found.trace([0.25, 0.5]).times == (1.0, 1.0)
    assert found.trace([0.25, 0.5], "calls").times == (1.0, 2.0)


def test_own_tokens_up_to_each_call() -> None:
    found = trace_of_messages(CHAT, MERGED, Tokenizer())
    # Behind the merged answers stands one more token of the template: it cannot be told from the model's own.
    assert found.calls == (Call("look", 1, 4.0, False), Call("go", 1, 4.0, False), Call("open", 2, 8.0, True))
    assert found.tokens == 10.0
    assert trace_of_messages(CHAT, EACH, Tokenizer()).calls == found.calls
    plain = [call("look"), tool("wall"), FINAL]
    assert trace_of_messages(plain, [9, END, 7, 7, 9, END], Tokenizer()).calls[0].tokens == 2.0
    unclear = trace_of_messages(CHAT, [9, END, 9, END], Tokenizer())
    assert math.isnan(unclear.tokens)


@pytest.mark.parametrize(
    ("completion", "ids", "cut"),
    [
        ("text", [9, END], False),
        ("text", [9, 9], True),
        ("", [], False),
        ([], [], False),
        ([call("look")], [9, END], True),  # the answer did not fit
        ([call("look"), tool("wall")], [9, END, 7, END, 7], True),
        ([call("look"), tool("wall"), FINAL], [9, END, 7, END, 7, 9], True),
        ([call("look"), tool("wall"), FINAL], [9, END, 7, END, 7, 9, END], False),
    ],
)
def test_truncation(completion: object, ids: list[int], cut: bool) -> None:
    assert trace_of_messages(completion, ids, Tokenizer()).truncated is cut


def test_a_return_without_a_call_is_at_an_unknown_time() -> None:
    found = trace_of_messages([call("look"), tool("ok")])
    trace = found.trace([0.5, 1.0])
    assert trace.times is not None and trace.times[0] == 1.0 and math.isnan(trace.times[1]) and trace.truncated
    assert trace_of_messages("no call").trace([]).returns == ()
    with pytest.raises(tp.UsageError, match="clock must be"):
        found.trace([0.5, 1.0], "seconds")  # type: ignore[arg-type]
