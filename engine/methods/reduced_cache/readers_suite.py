"""`python -m engine bench --suite readers`: are answers about long pages right if most of the page is left out?

Each prompt is a page followed by one question about it. The target answers each question several times: by plain
decoding, and with each selector. A selector chooses an eighth of the columns (the keys and values of a token); from the
question's last token on, the target attends only to the chosen columns. The results are counts, not times.
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

LENGTHS, QUICK_LENGTHS = (1024, 4096), (1024,)  # tokens of a page and its question
PART = 8  # one column in this many is read
ANSWER = 20  # tokens of an answer
PLAIN = "all columns"


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """Run the suite. A row of the report is about one way of choosing columns (keys and values), or about plain
    decoding. It has, for each kind of page, the number of right answers. both: the number of questions that were
    answered rightly by this way and by plain decoding."""
    parts = ReducedCacheDrafter.may_use()
    parts_by_role = {role: kind for role, kind in parts.items() if role in paths.parts}
    models = load_models(paths, parts_by_role, "float32", "cpu")
    if not models.target.tokenizer.chat_template:
        raise UserError(f"{models.target.name} answers no questions; --target smollm2 does.")
    lines, rows = [], []
    for tokens in QUICK_LENGTHS if quick else LENGTHS:
        page_rows = right_answers(models, tokens)
        rows += page_rows
        lines += [
            f"right answers to ten questions about each page of {tokens:,} tokens, of whose columns {tokens // PART} are read",
            table(page_rows, ["reader", *KINDS, "both", "the paper=claim"]),
            "",
        ]
    lines.append(f"both: of the questions that are rightly answered by {PLAIN}")
    return Report("\n".join(lines), {"setting": setting(models), "rows": rows})


def right_answers(models: Models, tokens: int) -> list[dict]:
    """Return a row of the report for each of the ``readers``, for pages of ``tokens`` tokens."""
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
    """Return, by name, plain decoding and one decoder for each selector (way of choosing columns) whose models are
    available."""
    by_name = {PLAIN: Ours(plain(), models)}
    for key, selector in SELECTORS.items():
        usable = (
            not selector.needs_draft or ReducedCacheDrafter.may_use().keys() <= models.parts.keys()
        )
        if issubclass(selector, ColumnSelector) and usable:
            options = {"selector": key, "budget": columns}
            by_name[key] = Ours(ReducedCacheDrafter, models, key, options)
    return by_name


def answered(
    models: Models, names: dict[str, Ours], prompts: Sequence[Sequence[int]]
) -> list[dict[str, str]]:
    """Return, for each prompt, the answers of all readers by name. All prompts begin with the same page, which the
    target runs over only once."""
    shared = len(commonprefix([list(prompt) for prompt in prompts]))
    page = models.target.session(shared)
    page.prefill(prompts[0][:shared])
    decode, answers = models.target.tokenizer.decode, []
    for prompt in tqdm(prompts, leave=False, disable=None):
        by_reader = {}
        for name, ours in names.items():
            request = ours.request(prompt, ANSWER)
            steps = run_loop(models.target, request, False, BehindPage(page, prompt))
            by_reader[name] = decode([token for step in steps for token in step.output])
        answers.append(by_reader)
    return answers


class BehindPage(PromptReading):
    """A prompt that begins with a page for which the target's session ``page`` already has the keys and values."""

    def __init__(self, page: Session, prompt: Sequence[int]) -> None:
        super().__init__(prompt[:-1])
        self._page = page

    def fill(self, session: Session, rows: int | None = None) -> None:
        session.take_over(self._page, self._page.length)
        session.prefill(self._tokens[self._page.length :], ())
