"""The notebook of the lessons: its command makes it, it is executed, and it leaves out no part of a lesson."""

import json
from collections import Counter

import nbformat
import pytest
from nbclient import NotebookClient

from presets.lessons import entries, lesson
from presets.lessons.class_quiz import class_quiz, marked
from presets.lessons.directives import KINDS
from presets.lessons.front import read_front
from tests.test_notebook import NOTEBOOK, outputs
from tools.cells import CELLS
from tools.notebook import main

pytestmark = pytest.mark.exhaustive

SKIPPED = "skip-execution"
"""The tag of cells that the client leaves out."""


@pytest.fixture(scope="module")
def executed(tmp_path_factory):
    file = tmp_path_factory.mktemp("notebook") / "lessons.ipynb"
    assert main(["-o", str(file)]) == 0
    notebook = nbformat.read(file, as_version=4)
    nbformat.validate(notebook)
    live = [cell for cell in notebook.cells if "live" in cell.metadata.get("tags", ())]
    for cell in live[1:]:  # one live run is enough
        cell.metadata["tags"] = [SKIPPED]
    place = {"metadata": {"path": str(NOTEBOOK.parent)}}
    return NotebookClient(notebook, timeout=600, resources=place).execute()


def test_every_directive_becomes_cells_and_no_number_stays_open(executed):
    assert CELLS.keys() == KINDS.keys()
    text = "\n".join(cell.source for cell in executed.cells if cell.cell_type == "markdown")
    asked = Counter()
    for entry in entries():
        told = lesson(entry.name)
        assert f"# {told['number']}. {told['title']}" in text
        body = read_front(entry.path)[1]
        asked.update(line[3:] for line in body.split("\n") if line[:3] == "```" and line[3:])
        for formula in (part for part in body.split("$$")[1::2]):
            assert formula.strip() in text
    assert text.count("**Predict.**") == asked["predict"]
    assert text.count("**Claim.**") == asked["claim"]
    assert "`=" not in text and "](lesson:" not in text and "](method:" not in text
    shown = sum(asked[kind] for kind in ("trace", "rule", "length", "passes"))
    drawn = outputs(executed, "application/vnd.plotly.v1+json")
    assert len(drawn) >= shown + 2 * asked["race"] + 1, (
        "a figure each, two of a race, and of one live run"
    )
    assert all(one["data"] for one in drawn)


def test_its_claims_hold_and_its_answers_are_those_of_the_page(executed):
    printed = "".join(outputs(executed, "text"))
    claims = sum(
        len(node["directive"]["holds"])
        for entry in entries()
        for screen in lesson(entry.name)["screens"]
        for node in screen["text"]
        if isinstance(node, dict) and node.get("directive", {}).get("kind") == "claim"
    )
    assert printed.count("'true': True") == claims and "'true': False" not in printed
    answers = [
        float(one) for one in outputs(executed, "text/plain") if not one.startswith("Figure")
    ]
    wanted = [
        node["directive"]["value"] + ("choices" in node["directive"])
        for entry in entries()
        for screen in lesson(entry.name)["screens"]
        for node in screen["text"]
        if isinstance(node, dict)
        and node.get("directive", {}).get("kind") == "predict"
        and not node["directive"].get("judge")
    ]
    assert answers == pytest.approx(wanted)


def test_the_engine_s_rule_follows_p(executed):
    figures = outputs(executed, "application/vnd.plotly.v1+json")
    tossed = [one for one in figures if "tosses" in str(one["layout"]["title"])]
    assert len(tossed) == 4
    for one in tossed:
        bars = {bar["name"]: bar["y"] for bar in one["data"]}
        assert bars["came"] == pytest.approx(bars["p, the target"], abs=0.05)


def test_the_quiz_stands_at_its_end_and_waits_for_answers(executed):
    asked, judged = (
        "".join(output.text for output in cell.outputs) for cell in executed.cells[-2:]
    )
    questions = class_quiz(1)
    assert all(question.words in asked for question in questions)
    assert all(choice in asked for question in questions for choice in question.choices)
    assert judged.count("Not answered yet.") == 12 and "0 of 12 right." in judged


def test_marks_tell_right_from_wrong():
    questions = class_quiz(7)
    right = {place: question.answer for place, question in enumerate(questions, 1)}
    assert "12 of 12 right." in marked(questions, right)
    choices = {place for place, question in enumerate(questions, 1) if question.choices}
    near = {p: a if p in choices else a + questions[p - 1].near for p, a in right.items()}
    assert "12 of 12 right." in marked(questions, near)
    place = min(choices)
    wrong = {**right, place: right[place] % len(questions[place - 1].choices) + 1}
    said = marked(questions, wrong).split("\n")
    assert said[-1] == "11 of 12 right."
    answer = questions[place - 1].choices[int(right[place]) - 1]
    assert said[place - 1].startswith(f"{place}. Not so: {answer}.")


def test_a_lesson_that_there_is_not_is_one_line(tmp_path, capsys):
    file = tmp_path / "one.ipynb"
    assert main(["-o", str(file), "nonsense"]) == 2
    assert capsys.readouterr().err.count("\n") == 1 and not file.exists()
    assert main(["-o", str(file), "rule", "--page", "https://example.org/"]) == 0
    cells = json.loads(file.read_text("utf-8"))["cells"]
    assert "https://example.org/?tab=learn&lesson=rule" in cells[2]["source"]
