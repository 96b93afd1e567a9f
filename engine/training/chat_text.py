"""Lets a chat model write the answers in many conversations; drafters for this model learn from its answers.

Many conversations are continued at once (``engine.fast.gpu.slots``). When an answer ends, its slot goes on with the
user's next turn or with another conversation, so no conversation waits for the longest answer. Each answer becomes one
document, whose prompt is the conversation before the answer.

    python -m engine.training conversations --checkpoints DIR
    python -m engine.training chat-text --checkpoints DIR --target TARGET --minutes 2
"""

from __future__ import annotations

import copy
import itertools
import json
import random
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from engine.errors import UserError
from engine.fast.gpu.lean_rows import fits
from engine.fast.gpu.slots import Drawing, Slots
from engine.model.generation import ends_of
from engine.training import selftext
from engine.training.common import need_data, need_file, say
from engine.training.conversations import Conversation, conversations
from engine.training.conversations.material import Material
from engine.training.corpus import make_vocabulary, read_corpora
from engine.training.loop import pick_precision
from engine.training.teacher import Teacher

COUNT, HELD_OUT = 48_000, 240  # conversations
LONGEST_PROMPT, LONGEST_ANSWER = 640, 384  # tokens
SHORT = 160  # tokens; longer prompts are read in a separate pass
DRAWN = 0.4  # the share of slots that draw tokens; the other slots write the likeliest token
ROWS = 48  # texts written at once
LEAST_CUT = 32  # the fewest tokens of an unfinished answer that is kept when the time is over
SAVED_SECONDS = 40.0  # seconds between two writes of the answers so far
MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
FILE, HELD_OUT_FILE = "conversations.jsonl", "held-out-conversations.jsonl"


def write_conversations(args) -> None:
    """The recipe ``conversations``: writes the user's turns of many conversations to two files, one of them held
    out."""
    need_data(args)
    texts = read_corpora(args.data)
    material = Material.of(texts, make_vocabulary(texts))
    for name, count, held_out in (
        (FILE, args.count or COUNT, False),
        (HELD_OUT_FILE, min(args.count or HELD_OUT, HELD_OUT), True),
    ):
        chosen = itertools.islice(conversations(material, args.seed, held_out), count)
        path = args.checkpoints / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(
                json.dumps(asdict(conversation), ensure_ascii=False) + "\n"
                for conversation in chosen
            )
        temporary.replace(path)
        say(f"{count} conversations in {path}")


def read_conversations(path: Path) -> list[Conversation]:
    """The conversations in a file that ``write_conversations`` wrote. Raises UserError for any other file."""
    need_file(path, "conversations")
    try:
        lines = path.read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [Conversation(row["kind"], tuple(row["turns"]), row["system"]) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"The conversations in {path} cannot be read.") from None


def write_chat_text(args) -> None:
    """The recipe ``chat-text``: writes the answers of the target named by --target. Answers to held-out conversations
    go to a separate file."""
    began = time.monotonic()
    teacher = Teacher.of(args)
    if not teacher.tokenizer.chat_template:
        raise UserError(f"{teacher.folder.name} has no chat template.")
    if not fits(teacher.module):
        raise UserError(f"{teacher.folder.name} is of a kind that cannot write many texts at once.")
    to_learn = read_conversations(args.checkpoints / FILE)
    held_out = read_conversations(args.checkpoints / HELD_OUT_FILE)
    random.Random(args.seed).shuffle(to_learn)
    torch.manual_seed(args.seed)
    module = copy.deepcopy(teacher.module).to(pick_precision(teacher.module.device.type))
    chat = Chat(teacher.tokenizer, ends_of(teacher.module, teacher.tokenizer).tokens)
    writer = Writer(module, chat, args.rows or ROWS)
    seconds = 60 * (args.minutes or 1e9) - (time.monotonic() - began)
    files = {False: teacher.text_file, True: teacher.text_file.with_name("held-out.npz")}
    for held, answers in writer.run(held_out, to_learn, args.tokens or 400_000, seconds):
        random.Random(args.seed).shuffle(answers)
        documents = [text.prompt + text.answer for text in answers]
        prompt_lengths = [len(text.prompt) for text in answers]
        selftext.save(files[held], documents, prompt_lengths, [True] * len(answers))


@dataclass
class Text:
    """A conversation as tokens. prompt: everything before the current answer. answer: the current answer so far.
    later: the user's later turns, as text."""

    prompt: list[int]
    later: tuple[str, ...]
    held_out: bool = False
    answer: list[int] = field(default_factory=list)


class Chat:
    """Turns conversations into tokens by a chat template. ends: the tokens that end an answer."""

    def __init__(self, tokenizer, ends: Collection[int]) -> None:
        self._tokenizer, self.ends = tokenizer, frozenset(ends)

    def begin(self, conversation: Conversation, held_out: bool) -> Text:
        said = [{"role": "user", "content": conversation.turns[0]}]
        if conversation.system is not None:
            said.insert(0, {"role": "system", "content": conversation.system})
        return Text(self._ids(self._rendered(said)), conversation.turns[1:], held_out)

    def after(self, text: Text) -> Text | None:
        """The conversation after its answer, extended by the user's next turn. None if there is no next turn, or if
        the answer was cut before its end."""
        if not text.later or text.answer[-1] not in self.ends:
            return None
        turn, *later = text.later
        said = [("user", "?"), ("assistant", MARK), ("user", turn)]
        rendered = self._rendered([{"role": role, "content": content} for role, content in said])
        ids = self._ids(rendered.rpartition(MARK)[2])
        if ids[:1] == text.answer[-1:]:
            del ids[0]
        return Text([*text.prompt, *text.answer, *ids], tuple(later), text.held_out)

    def _rendered(self, said: list[dict]) -> str:
        return self._tokenizer.apply_chat_template(said, tokenize=False, add_generation_prompt=True)

    def _ids(self, text: str) -> list[int]:
        return self._tokenizer(text, add_special_tokens=False).input_ids


class Writer:
    """Writes the answers of many conversations at once. rows: the number of slots."""

    def __init__(self, module, chat: Chat, rows: int) -> None:
        self._chat, self._rows = chat, rows
        longest = min(LONGEST_PROMPT + LONGEST_ANSWER, module.config.max_position_embeddings - 1)
        self._longest_prompt = longest - LONGEST_ANSWER
        self._drawn = round(DRAWN * rows)
        self._slots = Slots(module, rows, longest, Drawing(self._drawn))

    def run(
        self,
        held_out: Sequence[Conversation],
        known: Sequence[Conversation],
        tokens: int,
        seconds: float,
    ) -> Iterator[tuple[bool, list[Text]]]:
        """Write answers until there are ``tokens`` tokens or until ``seconds`` have passed. Every ``SAVED_SECONDS``
        and at the end, yield the pairs (True, all held-out answers so far) and (False, all other answers so far). Some
        of the slots draw their tokens at random; the others, and all held-out answers, are greedy."""
        began = saved = time.monotonic()
        others = self._texts(itertools.cycle(known), False)
        greedy = itertools.chain(self._texts(held_out, True), others)
        busy: dict[int, Text] = {}
        waiting: deque[tuple[int, Text]] = deque()
        done: dict[bool, list[Text]] = {True: [], False: []}
        count = 0
        while count < tokens and time.monotonic() - began < seconds:
            occupied = {slot for slot, _ in waiting} | busy.keys()
            for slot in (slot for slot in range(self._rows) if slot not in occupied):
                waiting.append((slot, next(others if slot < self._drawn else greedy)))
            self._begin(waiting)
            busy |= waiting
            waiting.clear()
            for slot, written in enumerate(self._slots.round()):
                text = busy[slot]
                if self._grow(text, written):
                    del busy[slot]
                    done[text.held_out].append(text)
                    count += len(text.answer)
                    following = self._chat.after(text)
                    if following and len(following.prompt) <= self._longest_prompt:
                        waiting.append((slot, following))
            if time.monotonic() - saved > SAVED_SECONDS:
                saved = time.monotonic()
                say(f"{count} tokens, {count / (saved - began):.0f} tokens/s")
                yield from ((held, list(texts)) for held, texts in done.items() if texts)
        for text in busy.values():
            if len(text.answer) >= LEAST_CUT:
                done[text.held_out].append(text)
                count += len(text.answer)
        spent = time.monotonic() - began
        say(
            f"the target wrote {count} tokens in {sum(map(len, done.values()))} answers, "
            f"{count / spent:.0f} tokens/s"
        )
        yield from ((held, list(texts)) for held, texts in done.items() if texts)

    def _texts(self, some: Iterable[Conversation], held_out: bool) -> Iterator[Text]:
        """Yields each of these conversations as a text up to its first answer, without those whose prompt is too
        long."""
        for conversation in some:
            text = self._chat.begin(conversation, held_out)
            if len(text.prompt) <= self._longest_prompt:
                yield text

    def _begin(self, waiting: Iterable[tuple[int, Text]]) -> None:
        """Run the model on the prompts of the waiting (slot, text) pairs. Short and long prompts have separate passes,
        because all prompts of a pass are padded to the longest."""
        for long in (False, True):
            batch = [(slot, text) for slot, text in waiting if (len(text.prompt) > SHORT) == long]
            if batch:
                self._slots.begin([slot for slot, _ in batch], [text.prompt for _, text in batch])

    def _grow(self, text: Text, written: list[int]) -> bool:
        """Append new tokens to the answer, but none after the token that ends it. Returns whether the answer has
        ended."""
        room = LONGEST_ANSWER - len(text.answer)
        written = written[:room]
        last = next((at for at, token in enumerate(written) if token in self._chat.ends), None)
        text.answer += written if last is None else written[: last + 1]
        return last is not None or len(text.answer) == LONGEST_ANSWER
