"""When the tool calls of a chat completion happened: turns, calls and tokens up to each of them.

An environment knows what was reached with each call, a completion when the call was made; a trace needs both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Any, Literal

from torchpref.errors import UsageError
from torchpref.rl.traces import Trace


@dataclass(frozen=True)
class Call:
    """One tool call.

    Attributes:
        name: of the tool.
        turn: number of the assistant's message that makes the call, from 1.
        tokens: the model's own tokens up to the end of that message; NaN where that cannot be told.
        failed: whether the answer says that no tool ran, as trainers do for unknown tools and wrong arguments.
    """

    name: str
    turn: int
    tokens: float
    failed: bool


@dataclass(frozen=True)
class MessageTrace:
    """What the messages of a completion say about its course.

    Attributes:
        turns: the assistant's messages.
        calls: its tool calls, in order.
        tokens: the model's own tokens in all, those of tool outputs left out; NaN where that cannot be told.
        truncated: whether it was cut: the last token does not end a message, or the last call was not answered.
    """

    turns: int
    calls: tuple[Call, ...]
    tokens: float
    truncated: bool

    def trace(self, returns: Sequence[float], clock: Literal["turns", "calls", "tokens"] = "turns") -> Trace:
        """The trace of a run that had reached ``returns[k]`` after its k-th call that did not fail.

        ``clock`` says what is counted up to each call. A return for which there is no call is at an unknown time.
        """
        if clock not in ("turns", "calls", "tokens"):
            raise UsageError(f"clock must be 'turns', 'calls' or 'tokens', got {clock!r}")
        times = [
            float(number if clock == "calls" else call.turn if clock == "turns" else call.tokens)
            for number, call in enumerate(self.calls, start=1)
            if not call.failed
        ]
        times += [nan] * (len(returns) - len(times))
        return Trace(tuple(float(value) for value in returns), tuple(times[: len(returns)]), self.truncated)


def trace_of_messages(
    completion: Any, completion_ids: Sequence[int] | None = None, tokenizer: Any = None
) -> MessageTrace:
    """Turns, tool calls and tokens of a completion in TRL's form.

    Args:
        completion: text, or a list of messages with ``role``, ``content`` and perhaps ``tool_calls``.
        completion_ids: its tokens, tool outputs among them.
        tokenizer: whose ``eos_token_id`` ends the model's messages; needed, with the ids, for tokens and for ``truncated`` by
            the last token.
    """
    messages = [{"role": "assistant"}] if isinstance(completion, str) else list(completion or ())
    ids = None if completion_ids is None else [int(token) for token in completion_ids]
    end = getattr(tokenizer, "eos_token_id", None)
    own = _own_tokens(messages, ids, end)
    calls: list[Call] = []
    turn = 0
    for place, message in enumerate(messages):
        if message.get("role") != "assistant":
            continue
        turn += 1
        answers = _answers(messages, place)
        for number, call in enumerate(message.get("tool_calls") or ()):
            function = call.get("function", call) if isinstance(call, Mapping) else {}
            answer = answers[number] if number < len(answers) else None
            calls.append(Call(str(function.get("name", "")), turn, own[turn - 1], _says_error(answer)))
    last = messages[-1] if messages else {}
    cut = bool(last.get("tool_calls")) or (last.get("role") == "tool")
    if ids and end is not None:
        cut = cut or ids[-1] != end
    return MessageTrace(turn, tuple(calls), own[-1] if own else (0.0 if not ids else nan), cut)


def _answers(messages: Sequence[Mapping[str, Any]], place: int) -> list[Mapping[str, Any]]:
    """The tools' messages right behind a message."""
    answers = []
    for message in messages[place + 1 :]:
        if message.get("role") == "assistant":
            break
        if message.get("role") == "tool":
            answers.append(message)
    return answers


def _says_error(answer: Mapping[str, Any] | None) -> bool:
    content = None if answer is None else answer.get("content")
    return isinstance(content, str) and content.lstrip().startswith(("{'error':", '{"error":'))


def _own_tokens(messages: Sequence[Mapping[str, Any]], ids: list[int] | None, end: int | None) -> list[float]:
    """The model's own tokens up to the end of each of its messages.

    Each ends with the end token, but for a last one that was cut. What stands between two of them, answers of tools and
    whatever the template puts around them, holds one end token for every message, or one in all, or none: which of these
    it is shows in the number of end tokens.
    """
    places = [place for place, message in enumerate(messages) if message.get("role") == "assistant"]
    if ids is None or end is None:
        return [nan] * len(places)
    ends = [position for position, token in enumerate(ids) if token == end]
    between = [later - place - 1 for place, later in zip(places, places[1:], strict=False)]
    closed = len(places) - (bool(ids) and ids[-1] != end and places[-1:] == [len(messages) - 1])
    for skipped in ([min(count, 1) for count in between], between, [0] * len(between)):
        if closed + sum(skipped) == len(ends):
            return _counted(places, ids, ends, skipped)
    return [nan] * len(places)


def _counted(places: Sequence[int], ids: Sequence[int], ends: Sequence[int], skipped: Sequence[int]) -> list[float]:
    """Own tokens, knowing how many end tokens stand between each two of the model's messages."""
    result: list[float] = []
    total, begin, number = 0, 0, 0
    for turn in range(len(places)):
        stop = ends[number] + 1 if number < len(ends) else len(ids)
        total += stop - begin
        result.append(float(total))
        number += 1
        if turn < len(skipped):
            number += skipped[turn]
            begin = ends[number - 1] + 1 if skipped[turn] else stop
    return result


__all__ = ["Call", "MessageTrace", "trace_of_messages"]
