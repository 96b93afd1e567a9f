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

TOKENS, QUICK_TOKENS = 4096, 1024  # of a page with a question
PART = 8  # of the columns, this part is read
ANSWER = 20  # tokens of an answer
QUICK = 3  # questions about each page


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """In a row: by kind of page, how many answers are right; both: of all questions that plain decoding answers rightly, how many."""
    parts = ReducedCacheDrafter.may_use()
    found = {role: kind for role, kind in parts.items() if role in paths.parts}
    models = load_models(paths, found, "float32", "cpu")
    tokenizer = models.target.tokenizer
    if not tokenizer.chat_template:
        raise UserError(f"{models.target.name} answers no questions; --target smollm2 does.")
    tokens = min(QUICK_TOKENS if quick else TOKENS, models.target.max_context - ANSWER)
    names = readers(models, tokens // PART)
    rows = {name: {"reader": name} | dict.fromkeys((*KINDS, "both"), 0) for name in names}
    asked = 0
    with torch_threads(models.target.torch_threads):
        for page in pages(tokens, lambda text: len(turn_of(tokenizer, text))):
            some = page.asked[:QUICK] if quick else page.asked
            asked += len(some)
            prompts = [turn_of(tokenizer, page.text + question) for question, _ in some]
            for said, (_, right) in zip(answered(models, names, prompts), some, strict=True):
                usual = right in said[PLAIN]
                for name, answer in said.items():
                    rows[name][page.kind] += right in answer
                    rows[name]["both"] += usual and right in answer
    told = [
        row | {"claim": SELECTORS[name].claim if name in SELECTORS else ""}
        for name, row in rows.items()
    ]
    text = (
        f"right answers to {asked // len(KINDS)} questions about each page of {tokens:,} tokens, of which {tokens // PART} are read\n"
        + table(told, ["reader", *KINDS, "both", "the paper=claim"])
        + f"\nboth: rightly answered by {PLAIN}, too"
    )
    return Report(text, {"setting": setting(models, tokens=tokens, asked=asked), "rows": told})


PLAIN = "all columns"


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
