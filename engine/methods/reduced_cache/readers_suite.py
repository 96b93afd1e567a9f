"""`python -m engine bench --suite readers`: are answers about long pages right where most of the page is left out?

The target reads a page and then, each time anew, one question about it. It answers as plain decoding does, and once with each way of
choosing columns, which from the question's last token on sees an eighth of them. Counts, not times.
"""

from collections.abc import Sequence
from os.path import commonprefix

from tqdm import tqdm

from engine.bench.contestants import Ours, plain
from engine.bench.reading_tasks import KINDS, pages
from engine.bench.report import Report, setting, table
from engine.bench.suite import Cards, turn_of
from engine.core.prompt import PromptReading
from engine.core.threads import torch_threads
from engine.errors import UserError
from engine.loops import run_loop
from engine.methods.reduced_cache.drafter import ReducedCacheDrafter
from engine.methods.shared.part_of_cache import SELECTORS
from engine.methods.shared.selector import ColumnSelector
from engine.model.session import Session
from engine.parts.loading import ModelPaths, Models, load_models

LENGTHS, QUICK_LENGTHS = (1024, 4096), (1024,)  # tokens of a page with a question
PART = 8  # of the columns, this part is read
ANSWER = 20  # tokens of an answer
PLAIN = "all columns"


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row: by kind of page, how many answers are right; both: of the questions that plain decoding answers rightly, how many."""
    parts = ReducedCacheDrafter.may_use()
    found = {role: kind for role, kind in parts.items() if role in paths.parts}
    models = load_models(paths, found, "float32", "cpu")
    if not models.target.tokenizer.chat_template:
        raise UserError(f"{models.target.name} answers no questions; --target smollm2 does.")
    told, rows = [], []
    for tokens in QUICK_LENGTHS if quick else LENGTHS:
        some = right_answers(models, tokens)
        rows += some
        told += [
            f"right answers to ten questions about each page of {tokens:,} tokens, of whose columns {tokens // PART} are read",
            table(some, ["reader", *KINDS, "both", "the paper=claim"]),
            "",
        ]
    told.append(f"both: of the questions that are rightly answered by {PLAIN}")
    return Report("\n".join(told), {"setting": setting(models), "rows": rows})


def right_answers(models: Models, tokens: int) -> list[dict]:
    """A row for each reader, for pages of so many tokens."""
    tokenizer, names = models.target.tokenizer, readers(models, tokens // PART)
    rows = {
        name: {"reader": name, "tokens": tokens} | dict.fromkeys((*KINDS, "both"), 0)
        for name in names
    }
    with torch_threads(models.target.torch_threads):
        for page in pages(tokens, lambda text: len(turn_of(tokenizer, text))):
            prompts = [turn_of(tokenizer, page.text + question) for question, _ in page.asked]
            for said, (_, right) in zip(answered(models, names, prompts), page.asked, strict=True):
                for name, answer in said.items():
                    rows[name][page.kind] += right in answer
                    rows[name]["both"] += right in answer and right in said[PLAIN]
    return [
        row | {"claim": SELECTORS[name].claim if name in SELECTORS else ""}
        for name, row in rows.items()
    ]


def readers(models: Models, columns: int) -> dict[str, Ours]:
    """Plain decoding, and a reader for each way of choosing columns whose models are at hand."""
    found = {PLAIN: Ours(plain(), models)}
    for key, selector in SELECTORS.items():
        known = (
            not selector.needs_draft or ReducedCacheDrafter.may_use().keys() <= models.parts.keys()
        )
        if issubclass(selector, ColumnSelector) and known:
            options = {"selector": key, "budget": columns}
            found[key] = Ours(ReducedCacheDrafter, models, key, options)
    return found


def answered(
    models: Models, names: dict[str, Ours], prompts: Sequence[Sequence[int]]
) -> list[dict[str, str]]:
    """By reader, the answer to each of these prompts. What they begin with is read once."""
    shared = len(commonprefix([list(prompt) for prompt in prompts]))
    page = models.target.session(shared)
    page.prefill(prompts[0][:shared])
    decode, found = models.target.tokenizer.decode, []
    for prompt in tqdm(prompts, leave=False, disable=None):
        said = {}
        for name, ours in names.items():
            request = ours.request(prompt, ANSWER)
            steps = run_loop(models.target, request, False, BehindPage(page, prompt))
            said[name] = decode([token for step in steps for token in step.output])
        found.append(said)
    return found


class BehindPage(PromptReading):
    """A prompt whose beginning another session has read."""

    def __init__(self, page: Session, prompt: Sequence[int]) -> None:
        super().__init__(prompt[:-1])
        self._page = page

    def fill(self, session: Session, rows: int | None = None) -> None:
        session.take_over(self._page, self._page.length)
        session.prefill(self._tokens[self._page.length :], ())
