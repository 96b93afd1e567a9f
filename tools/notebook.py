"""python -m tools.notebook -o FILE.ipynb [LESSON ...]: the lessons as a Jupyter notebook, all of them and the quiz, or
these.

The text and its formulas, and for each directive a cell that asks the finished runs and draws the figure in Python.
The notebook is run from a clone of the project, in its environment, with Jupyter beside it.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.errors import UserError, unknown
from engine.trace.writing import write_lines
from presets.lessons import entries, lesson
from presets.lessons.front import read_front
from presets.lessons.quiz import quiz
from presets.lessons.reading import TEACHER, titled
from presets.lessons.text import blocks
from tools.cells import Cell, cells_of, code, markdown, written

PAGE = "http://127.0.0.1:7860/"
HEAD = """# Speculative decoding in {count} lessons

Each lesson asks first: guess, then run the cell that asks the finished run. Numbers in the text were filled in when this notebook was made.
Run the cells from a clone of Draftscope, in its environment, with Jupyter beside it. Links lead to the page at {page}."""
SETUP = '''
import sys
from dataclasses import replace
from pathlib import Path

root = next(p for p in (Path.cwd(), *Path.cwd().parents) if (p / "engine").is_dir())
sys.path.insert(0, str(root))

import torch

from engine.core.chance import Chance
from engine.run import open_run
from engine.core.sampling import Sampling
from engine.trace import read_trace
from engine.core.tree import ROOT, DraftTree
from engine.rules import Case
from engine.rules.rejection import Rejection
from presets import examples
from presets.conditions import figure, finished, holds
from presets.lessons.class_quiz import class_quiz, marked
from presets.lessons.directives import held
from presets.lessons.moments import moment
from presets.lessons.passes import passes, prices
from presets.recording import request_of
from viz.figures import race_figures, run_figures
from viz.instruments import experts_figure, length_figure, passes_figure, rule_figure, step_figure


def toss(p, q, times):
    """The engine's own rule on one place of a text, so many times: how often each word came, how many guesses were kept."""
    law, rows = torch.tensor(q, dtype=torch.float64), torch.tensor([p, p], dtype=torch.float64)
    rule, chance, counts, kept = Rejection(), Chance.of(1), [0] * len(p), 0
    for place in range(times):
        tree = DraftTree()
        tree.draw(ROOT, chance.drafting.draw(law), "iid", law)
        verdict = rule.judge(Case(tree, rows, None, Sampling(1.0), place, chance.judging))
        counts[tree.tokens[0] if verdict.accepted else verdict.final_token] += 1
        kept += len(verdict.accepted)
    return counts, kept
'''

QUIZ = """# {title}

All of it was in the lessons. The same class number gives everyone the same questions, here and [on the page]({page}?tab=learn&lesson=quiz)."""
QUESTIONS = r"""
class_number = 1
questions = class_quiz(class_number)
for place, question in enumerate(questions, 1):
    print(f"{place}. {question.told()}\n")
"""
MARKS = """
answers = {{{answers}}}  # a number, or the number of a choice, in place of None
print(marked(questions, answers))
"""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.notebook", description=__doc__)
    parser.add_argument("-o", "--output", type=Path, required=True, help="the file to write")
    parser.add_argument("--page", default=PAGE, help=f"the address of the page (default: {PAGE})")
    parser.add_argument("lessons", nargs="*", help="names of lessons (default: all)")
    options = parser.parse_args(arguments)
    try:
        book = notebook(options.lessons, options.page)
        write_lines(options.output, [json.dumps(book, indent=1, ensure_ascii=False) + "\n"])
    except UserError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{options.output}: {len(book['cells'])} cells")
    return 0


def notebook(names: list[str] | None = None, page: str = PAGE) -> dict:
    """Return the notebook of these lessons, or of all lessons and the quiz, in nbformat 4. Raises UserError."""
    by_name = {entry.name: entry.path for entry in entries()}
    for name in names or ():
        if name not in by_name:
            raise unknown("lesson", name, by_name)
    chosen = names or list(by_name)
    cells = [markdown(HEAD.format(count=len(chosen), page=page)), code(SETUP)]
    for name in chosen:
        cells += _lesson(name, by_name[name], page)
    if not names:
        cells += _quiz(page)
    numbered = [{"id": f"cell-{place}", **cell} for place, cell in enumerate(cells)]
    kernel = {"display_name": "Python 3", "language": "python", "name": "python3"}
    about = {"kernelspec": kernel, "language_info": {"name": "python"}}
    return {"cells": numbered, "metadata": about, "nbformat": 4, "nbformat_minor": 5}


def _lesson(name: str, path: Path, page: str) -> Iterator[Cell]:
    """Yield the cells of a lesson: its question, its screens, the teacher's notes, and further reading."""
    content, here = lesson(name), f"{page}?tab=learn&lesson={name}"
    yield markdown(
        f"# {content['number']}. {content['title']}\n\n{content['question']} [On the page]({here})"
    )
    yield from _screens(read_front(path)[1], content["screens"], page, here)
    goals = "\n".join(f"- {goal}" for goal in content["goals"])
    papers = "\n".join(_paper(card) for card in content["reading"])
    yield markdown(f"**You can now**\n\n{goals}\n\n**Read on**\n\n{papers}")


def _quiz(page: str) -> list[Cell]:
    content = quiz()
    answers = ", ".join(f"{place}: None" for place in range(1, len(content["questions"]) + 1))
    return [
        markdown(QUIZ.format(title=content["title"], page=page)),
        code(QUESTIONS),
        code(MARKS.format(answers=answers)),
    ]


def _screens(text: str, screens: list[dict], page: str, here: str) -> Iterator[Cell]:
    """Yield the cells of a lesson's text. An instrument stands where its author wrote it, below the questions about
    it."""
    places = {screen["title"]: screen["id"] for screen in screens} | {TEACHER: ""}
    lines, pending, title = text.split("\n"), [], TEACHER
    for block in blocks(text):
        if block.type == "heading" and block.tag == "h2":
            title = titled(block)
        if title not in places:
            continue  # the screen is left out
        screen = places[title]
        if block.type == "fence" and block.info:
            if pending:
                yield markdown("\n\n".join(pending))
            pending = []
            yield from cells_of(block, page, f"{here}&screen={screen}")
        else:
            pending.append(written("\n".join(lines[slice(*block.map)]), page))
    if pending:
        yield markdown("\n\n".join(pending))


def _paper(one: dict) -> str:
    paper = one["paper"]
    if not paper:
        return f"- {one['title']}"
    return f"- **{one['title']}**: *{paper['title']}*. {paper['authors']}. {paper['venue']}, {paper['year']}."


if __name__ == "__main__":
    sys.exit(main())
