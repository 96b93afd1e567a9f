"""The material that requests quote: passages, word problems, small programs and their comments, taken from the corpora."""

from __future__ import annotations

import random
import re
from dataclasses import dataclass, field

from engine.training.generators.words import Vocabulary, paragraph

SHORTEST, LONGEST = 160, 1100  # characters of a passage


@dataclass(frozen=True)
class Material:
    """Texts to quote. passages: paragraphs of prose. sentences: single sentences of the passages. problems: arithmetic
    problems in words, without answers. programs: pairs of a description and Python code. vocabulary: the vocabulary of
    the generators."""

    passages: list[str] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    programs: list[tuple[str, str]] = field(default_factory=list)
    vocabulary: Vocabulary = field(default_factory=Vocabulary)

    @classmethod
    def of(cls, texts: dict[str, list[str]], vocabulary: Vocabulary) -> Material:
        """The material in the texts of the corpora. texts: name of a source -> its texts (``corpus.read_corpora``)."""
        prose = [
            text
            for source in ("picture book", "fable", "simple tale", "fairytale", "tale", "story")
            for text in texts.get(source, [])[:4000]
        ]
        passages = [passage for text in prose for passage in _passages(text)]
        sentences = [
            sentence.strip()
            for passage in passages
            for sentence in re.split(r"(?<=[.!?])\s+", passage)
            if 30 <= len(sentence.strip()) <= 160
        ]
        problems = [_question_of(text) for text in texts.get("gsm8k", [])]
        programs = [_program_of(text) for text in texts.get("mbpp", [])]
        return cls(passages, sorted(set(sentences)), problems, programs, vocabulary)

    def passage(self, rng: random.Random, longest: int = LONGEST) -> str:
        """A random passage of prose of at most ``longest`` characters. If the material has no passages, a paragraph of
        any length is made from the vocabulary instead."""
        if not self.passages:
            return paragraph(rng, self.vocabulary, 3, 5)
        for _ in range(50):
            candidate = rng.choice(self.passages)
            if len(candidate) <= longest:
                return candidate
        return rng.choice(self.passages)[:longest].rpartition(" ")[0]

    def sentence(self, rng: random.Random) -> str:
        return rng.choice(
            self.sentences or self.vocabulary.sentences or ["The cat sat in the garden."]
        )


def _passages(text: str) -> list[str]:
    """The passages of a text. Each consists of successive whole paragraphs, of SHORTEST to LONGEST characters
    together."""
    runs, run = [], ""
    for part in re.split(r"\n\s*\n", text):
        part = " ".join(part.split())
        if run and len(run) + len(part) > LONGEST:
            runs.append(run)
            run = ""
        run = f"{run} {part}".strip()
    return [passage for passage in [*runs, run] if SHORTEST <= len(passage) <= LONGEST]


def _question_of(text: str) -> str:
    return text.partition("\nAnswer: ")[0].removeprefix("Question: ")


def _program_of(text: str) -> tuple[str, str]:
    comment, _, code = text.partition("\n")
    return comment.removeprefix("# "), code
