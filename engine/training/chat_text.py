"""A target's answers in conversations: the text from which drafters of a chat model learn.

Hundreds of conversations go on at once (``engine.fast.gpu.slots``): when an answer ends, its slot takes the next turn or
the next conversation, so no text waits for the longest. Each answer is a document of its own, whose prompt is all
that stands before it.

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
SHORT = 160  # tokens; longer prompts are read in a pass of their own
DRAWN = 0.4  # the share of the slots that draw; the others write the likeliest token
ROWS = 48  # texts written at once
LEAST_CUT = 32  # tokens of an answer that is kept although the time is over
SAVED_SECONDS = 40.0  # between two savings of what there is
MARK = "\N{OBJECT REPLACEMENT CHARACTER}"
FILE, HELD_OUT_FILE = "conversations.jsonl", "held-out-conversations.jsonl"


def write_conversations(args) -> None:
    """The recipe ``conversations``."""
    need_data(args)
    texts = read_corpora(args.data)
    material = Material.of(texts, make_vocabulary(texts))
    for name, count, held_out in (
        (FILE, args.count or COUNT, False),
        (HELD_OUT_FILE, min(args.count or HELD_OUT, HELD_OUT), True),
    ):
        some = itertools.islice(conversations(material, args.seed, held_out), count)
        path = args.checkpoints / name
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_suffix(".tmp")
        with temporary.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(asdict(one), ensure_ascii=False) + "\n" for one in some)
        temporary.replace(path)
        say(f"{count} conversations in {path}")


def read_conversations(path: Path) -> list[Conversation]:
    """Raises UserError where the file is none of ``write_conversations``."""
    need_file(path, "conversations")
    try:
        lines = path.read_text("utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return [Conversation(row["kind"], tuple(row["turns"]), row["system"]) for row in rows]
    except (ValueError, KeyError, TypeError):
        raise UserError(f"The conversations in {path} cannot be read.") from None


def write_chat_text(args) -> None:
    """The recipe ``chat-text``: the answers of the target named by --target, the held-out ones in a file of their own."""
    began = time.monotonic()
    teacher = Teacher.of(args)
    if not teacher.tokenizer.chat_template:
        raise UserError(f"{teacher.folder.name} has no chat template.")
    if not fits(teacher.module):
        raise UserError(f"{teacher.folder.name} is of a kind that cannot write many texts at once.")
    known = read_conversations(args.checkpoints / FILE)
    held_out = read_conversations(args.checkpoints / HELD_OUT_FILE)
    random.Random(args.seed).shuffle(known)
    torch.manual_seed(args.seed)
    module = copy.deepcopy(teacher.module).to(pick_precision(teacher.module.device.type))
    chat = Chat(teacher.tokenizer, ends_of(teacher.module, teacher.tokenizer).tokens)
    writer = Writer(module, chat, args.rows or ROWS)
    seconds = 60 * (args.minutes or 1e9) - (time.monotonic() - began)
    files = {False: teacher.text_file, True: teacher.text_file.with_name("held-out.npz")}
    for held, answers in writer.run(held_out, known, args.tokens or 400_000, seconds):
        random.Random(args.seed).shuffle(answers)
        documents = [one.prompt + one.answer for one in answers]
        given = [len(one.prompt) for one in answers]
        selftext.save(files[held], documents, given, [True] * len(answers))


@dataclass
class Text:
    """A conversation as tokens: prompt: everything before the current answer; answer: the answer so far; later: the
    turns to come."""

    prompt: list[int]
    later: tuple[str, ...]
    held_out: bool = False
    answer: list[int] = field(default_factory=list)


class Chat:
    """Conversations as the tokens of a chat template. ends: the tokens that end an answer."""

    def __init__(self, tokenizer, ends: Collection[int]) -> None:
        self._tokenizer, self.ends = tokenizer, frozenset(ends)

    def begin(self, conversation: Conversation, held_out: bool) -> Text:
        said = [{"role": "user", "content": conversation.turns[0]}]
        if conversation.system is not None:
            said.insert(0, {"role": "system", "content": conversation.system})
        return Text(self._ids(self._rendered(said)), conversation.turns[1:], held_out)

    def after(self, text: Text) -> Text | None:
        """The text with its next turn; None where there is none, and after an answer that was cut."""
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
    """Writes the answers of many conversations at once. rows: how many."""

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
        """(whether held out, all answers so far), now and then and at the end: after this many tokens or seconds. The
        first slots draw; held-out answers are always the likeliest ones."""
        began = saved = time.monotonic()
        others = self._texts(itertools.cycle(known), False)
        greedy = itertools.chain(self._texts(held_out, True), others)
        busy: dict[int, Text] = {}
        waiting: deque[tuple[int, Text]] = deque()
        done: dict[bool, list[Text]] = {True: [], False: []}
        count = 0
        while count < tokens and time.monotonic() - began < seconds:
            taken = {slot for slot, _ in waiting} | busy.keys()
            for slot in (slot for slot in range(self._rows) if slot not in taken):
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
        """Those of these conversations whose prompts are not too long, as texts to be written."""
        for one in some:
            text = self._chat.begin(one, held_out)
            if len(text.prompt) <= self._longest_prompt:
                yield text

    def _begin(self, waiting: Iterable[tuple[int, Text]]) -> None:
        """Read the prompts, the long ones in a pass of their own, because prompts are padded to the longest."""
        for long in (False, True):
            some = [(slot, each) for slot, each in waiting if (len(each.prompt) > SHORT) == long]
            if some:
                self._slots.begin([slot for slot, _ in some], [each.prompt for _, each in some])

    def _grow(self, text: Text, written: list[int]) -> bool:
        """Add what was written to the answer; whether it has ended."""
        room = LONGEST_ANSWER - len(text.answer)
        written = written[:room]
        last = next((at for at, token in enumerate(written) if token in self._chat.ends), None)
        text.answer += written if last is None else written[: last + 1]
        return last is not None or len(text.answer) == LONGEST_ANSWER
