"""Methods from a folder outside the repository: what they may do wrong, one sentence each, and proofs of planted mistakes."""

import json
import re

import gradio as gr
import pytest

from app import menu, settings
from app.methods import Methods
from engine.__main__ import main
from engine.bounded import time_limit
from engine.errors import UserError
from engine.finding import OUTSIDE
from engine.methods import drafter, drafters, own_drafters, unusable
from engine.methods.guarded import outside_drafter
from engine.parts.kinds import kind_of
from engine.proof.proving import prove
from engine.rules import outside_rules, own_rules, verifiers
from engine.run import RunRequest, open_run
from presets import cards, family, presets
from tests.grids import some
from tests.outside import outside_methods
from tools.new_method import CARD

DRAFTER = """
import torch
from engine.core.drafter import Drafter
from engine.core.tree import ROOT, DraftTree


class Mine(Drafter):
    key = "KEY"
    title = "Mine"
    summary = "Draws."
    trial = {}
    family = "chain"

    @classmethod
    def build(cls, settings, models):
        made = cls(settings)
        made.weights = torch.arange(1.0, models.target.vocab_size + 1)
        return made

    @classmethod
    def kinds(cls, sampling):
        return frozenset({"iid"})

    def law(self, token):
        q = self.weights.roll(token)
        return q / q.sum()

    def propose(self, context, max_depth):
        tree, parent, token = DraftTree(), ROOT, context[-1]
        for place in range(min(2, max_depth)):
            q = self.law(token)
            BODY
        return tree
"""
RIGHT = """token = self.chance.draw(q)
            parent = tree.draw(parent, token, "iid", q, "mine")"""
RULE = """
import torch
from engine.core.rule import Judgement, Verdict, Verifier, statuses
from engine.core.tree import ROOT


class Own(Verifier):
    key = "own_rule"
    summary = "judges a chain"
    exact_kinds = frozenset({"iid"})

    def judge(self, case):
        tree, at, kept, told, coin = case.tree, ROOT, [], [], None
        while children := tree.children(at):
            p, node = case.p[at + 1], children[0]
            token, q = tree.tokens[node], tree.laws[tree.draws[at][0].law]
            accept = ACCEPT
            coin = COIN
            told.append(Judgement(node, "own", float(p[token]), float(q[token]), accept, coin))
            if coin >= accept:
                rest = RESIDUAL
                final = case.chance.draw(rest / rest.sum(), case.position + len(kept))
                return Verdict(kept, statuses(len(tree), kept, told), told, final, "recovered", [ROOT, *kept])
            kept.append(node)
            at = node
        last = BONUS
        final = case.chance.draw(last, case.position + len(kept))
        return Verdict(kept, statuses(len(tree), kept, told), told, final, "bonus", [ROOT, *kept])
"""
HONEST = {
    "ACCEPT": "float((p[token] / q[token]).clamp(max=1))",
    "COIN": "case.chance.toss()",
    "RESIDUAL": "(p - q).clamp(min=0)",
    "BONUS": "case.p[at + 1]",
}


def written(folder, key="mine", body=RIGHT, rule=None):
    place = folder / key
    place.mkdir()
    (place / "drafter.py").write_text(DRAFTER.replace("KEY", key).replace("BODY", body), "utf-8")
    if rule is not None:
        text = RULE
        for name, code in (HONEST | rule).items():
            text = text.replace(name, code)
        (place / "rule.py").write_text(text, "utf-8")
    return place


def proven(place, *rules):
    """Prove the drafter of this folder with these rules, or with the folder's own, or with ``rejection`` if it has
    none."""
    own = outside_rules(place, own_rules()) if not rules else []
    rules = [*own, *(verifiers()[key] for key in rules)]
    return prove(outside_drafter(place, own_drafters()), rules, seconds=600, most=16)


def test_honest_ones_are_exact(tmp_path):
    (found,) = proven(written(tmp_path, rule={})).rules
    assert found.rule == "own_rule" and found.counterexample is None and found.branches > 100


def test_the_command_line_shows_a_counterexample(tmp_path, capsys):
    place = written(tmp_path, body=DISHONEST_DRAFTERS["a drawn token is dropped"])
    assert main(["prove", str(place), "--rule", "rejection"]) == 1
    told = capsys.readouterr().out
    assert main(["prove", str(place), "--rule", "rejecton"]) == 2
    rows = [
        [
            float(number)
            for number in re.search(rf"^  {name} +([\d. ]+)$", told, re.MULTILINE)[1].split()
        ]
        for name in ("expected", "got")
    ]
    assert "mine: biased with rejection" in told and "text so far" in told
    assert all(abs(sum(row) - 1) < 1e-3 for row in rows) and rows[0] != rows[1]


DISHONEST_DRAFTERS = {
    "a drawn token is dropped": """token = self.chance.draw(q)
            if q[token] < 0.3: break
            parent = tree.draw(parent, token, "iid", q, "mine")""",
    "another temperature in q": """token = self.chance.draw(q.sqrt())
            parent = tree.draw(parent, token, "iid", q, "mine")""",
    "siblings as if independent": """left = q.clone()
            for _ in range(2):
                token = self.chance.draw(left / left.sum())
                left[token] = 0
                tree.draw(ROOT, token, "iid", q, "mine")
            break""",
    "the law of another place": """token = self.chance.draw(q)
            parent = tree.draw(parent, token, "iid", self.law(context[-1]), "mine")""",
    "the better of two draws": """token = max(self.chance.draw(q), self.chance.draw(q))
            parent = tree.draw(parent, token, "iid", q, "mine")""",
    "the likeliest token as if drawn": """token = int(q.argmax())
            parent = tree.draw(parent, token, "iid", q, "mine")""",
}
DISHONEST_RULES = {
    "a residual with too much in it": {"RESIDUAL": "(p - q).clamp(min=0) + 0.01"},
    "the residual is p": {"RESIDUAL": "p"},
    "a bonus from the draft": {"BONUS": "q if tree.tokens else case.p[at + 1]"},
    "the quotient upside down": {
        "ACCEPT": "float((q[token] / p[token].clamp(min=1e-9)).clamp(max=1))"
    },
    "one coin for all nodes": {"COIN": "coin or case.chance.toss()"},
}


@pytest.mark.parametrize("mistake", DISHONEST_DRAFTERS)
def test_a_dishonest_drafter_is_found(mistake, tmp_path):
    assert_refuted(proven(written(tmp_path, body=DISHONEST_DRAFTERS[mistake]), "rejection"))


@pytest.mark.parametrize("mistake", some(DISHONEST_RULES, lambda one: "one coin" not in one))
def test_a_dishonest_rule_is_found(mistake, tmp_path):
    assert_refuted(proven(written(tmp_path, rule=DISHONEST_RULES[mistake])))


def assert_refuted(proof) -> None:
    """The counterexample has two laws of the next token, which differ."""
    (shown,) = proof.rules
    found = shown.counterexample
    assert not proof.exact and found.context and found.tokens
    assert sum(found.expected) == pytest.approx(1) and sum(found.got) == pytest.approx(1)
    assert max(abs(a - b) for a, b in zip(found.expected, found.got, strict=True)) > 1e-3


NEVER = "while True: pass"
UNUSABLE = {
    "leaves": ("raise SystemExit(0)", "SystemExit"),
    "swallows": (
        """
            try:
                while True: pass
            except BaseException: pass""",
        "took more than",
    ),
    "stubborn": (
        """
            while True:
                try:
                    while True: pass
                except RuntimeError: pass""",
        "took more than",
    ),
    "token": ('tree.draw(parent, 10**6, "one_hot", None, "mine")', "does not have"),
    "fails": ("1 / 0", "ZeroDivisionError"),
    "loops": (NEVER, "took more than"),
    "own_draws": (
        RIGHT.replace("self.chance.draw(q)", "int(torch.multinomial(q, 1))"),
        "self.chance",
    ),
}


@pytest.mark.parametrize("key", UNUSABLE)
def test_one_sentence_says_why_it_cannot_be_proven(key, tmp_path, capsys, monkeypatch):
    body, words = UNUSABLE[key]
    # what never ends uses up all of its time
    monkeypatch.setattr(time_limit, "PATIENCE", 0.3 if words == "took more than" else 1.0)
    assert main(["prove", str(written(tmp_path, key, body))]) == 2
    told = capsys.readouterr().err.splitlines()[-1]
    assert told.startswith(f"error: The method {key} ") and words in told, told


WRONG_WORDS = {
    "strange_part": 'needs = {"thing": "thing"}',
    "strange_rule": 'default_verifier = "rejecton"',
    "strange_option": 'options = ("length",)',
    "strange_trial": 'trial = {"size": 3}',
    "strange_loop": 'loop = "round"',
    "no_words": 'summary = ""; title = 3',
}
"""Declarations that the page and the lists could not read, each in place of a line that could."""


@pytest.fixture
def bad_folders(tmp_path, monkeypatch):
    """Return good folders beside folders that cannot be used."""
    written(tmp_path, "good_one")
    written(tmp_path, "taken").joinpath("drafter.py").write_text(
        DRAFTER.replace("KEY", "chain").replace("BODY", RIGHT)
    )
    (tmp_path / "empty").mkdir()
    (tmp_path / "raises").mkdir()
    (tmp_path / "raises" / "drafter.py").write_text("raise SystemExit('\\x1b[31mbye')")
    written(tmp_path, "endless", NEVER)
    (tmp_path / "chain").mkdir()  # empty, and must not take the place of the engine's own
    honest = DRAFTER.replace("BODY", RIGHT)
    for name, line in WRONG_WORDS.items():
        text = honest.replace("KEY", name).replace(
            'family = "chain"', f'family = "chain"\n    {line}'
        )
        (tmp_path / name).mkdir()
        (tmp_path / name / "drafter.py").write_text(text, "utf-8")
    written(tmp_path, "no_class_method").joinpath("drafter.py").write_text(
        honest.replace("KEY", "no_class_method").replace(
            "    @classmethod\n    def kinds", "    def kinds"
        )
    )
    written(tmp_path, "no_kind").joinpath("part.py").write_text("x = 1")
    written(tmp_path, "no_summary", rule={}).joinpath("rule.py").write_text(
        RULE.replace('"judges a chain"', '""')
    )
    with outside_methods(tmp_path, monkeypatch):
        yield tmp_path


def test_bad_folders_are_left_out_with_a_sentence_each(bad_folders, capsys):
    assert (
        "good_one" in drafters() and drafters()["good_one"].yours and not drafters()["chain"].yours
    )
    bad = {"taken", "empty", "raises", "chain", "no_kind", "no_summary", "no_class_method"}
    bad |= {*WRONG_WORDS}
    assert set(unusable()) == bad
    assert drafter("chain") is drafters()["chain"] and not drafter("chain").yours
    assert kind_of("draft") and "own_rule" not in verifiers()
    assert "has no drafter.py" in unusable()["empty"]
    assert "which another method has already" in unusable()["taken"]
    assert "SystemExit" in unusable()["raises"] and "\x1b" not in unusable()["raises"]
    assert main(["list"]) == 0
    out, err = capsys.readouterr()
    assert "good_one" in out and err.count("left out: ") == len(bad)


@pytest.mark.parametrize(
    "line",
    [
        'options = ("share",)',
        "options = None",
        'exact_kinds = frozenset({"often"})',
        'exact_kinds = "iid"',
        "title = 3",
        'sentences = {"kept": 3}',
        "sentences = None",
    ],
)
def test_a_rule_with_strange_declarations_is_left_out(line, tmp_path, monkeypatch):
    folder = written(tmp_path, "strange", rule={})
    text = (folder / "rule.py").read_text("utf-8")
    own = '    exact_kinds = frozenset({"iid"})\n'
    (folder / "rule.py").write_text(text.replace(own, f"{own}    {line}\n"), "utf-8")
    with outside_methods(tmp_path, monkeypatch):
        assert "own_rule" not in verifiers()
        assert line.split()[0] in unusable()["strange"]


def test_one_of_ones_own_runs_and_an_endless_one_is_stopped(bad_folders, monkeypatch):
    def text(key: str) -> str:
        run = open_run(RunRequest("Once upon a time", family(), drafter=key, max_new_tokens=12))
        list(run.steps())
        return run.summary()

    assert '"stop":"length"' in text("good_one").replace(" ", "")
    monkeypatch.setattr(time_limit, "PATIENCE", 0.5)
    with pytest.raises(UserError, match="The method endless took more than"):
        text("endless")


def test_ones_own_may_return_a_tree_or_a_proposal(tmp_path, monkeypatch):
    tree, proposal = written(tmp_path, "a_tree"), written(tmp_path, "a_proposal")
    file = proposal / "drafter.py"
    text = file.read_text("utf-8").replace("return tree", "return Proposal(tree)")
    file.write_text(f"from engine.core.proposal import Proposal\n{text}", "utf-8")
    outputs = {}
    with outside_methods(tmp_path, monkeypatch):
        for place in (tree, proposal):
            asked = RunRequest("Once", family(), place.name, max_new_tokens=6, temperature=0.8)
            lines = [json.loads(line) for line in open_run(asked).steps()]
            outputs[place.name] = [(line["nodes"]["token"], line["output"]) for line in lines]
    assert outputs["a_tree"] == outputs["a_proposal"]


def test_a_drafter_that_names_no_family_is_not_taken_for_plain_decoding(tmp_path):
    place = written(tmp_path)
    file = place / "drafter.py"
    file.write_text(file.read_text("utf-8").replace('    family = "chain"\n', ""), "utf-8")
    plain = drafter("none")
    assert outside_drafter(place, own_drafters()).family not in (plain.family, "")


def test_the_picker_lists_ones_own_under_yours(bad_folders):
    found = menu.drafter_menu()
    assert menu.FAMILIES[found["good_one"]["family"]] == "Yours"
    assert found["chain"]["family"] == "chain" and found["good_one"]["exact"]


def test_ones_own_has_a_card_among_the_methods(tmp_path, monkeypatch, capsys):
    card = CARD.format(title="<b>Mine</b>") + f'[example]\npreset = "{presets()[0].name}"\n'
    for name, text in (("with_card", card), ("without_card", ""), ("bad_card", "title = 3")):
        folder = written(tmp_path, name)
        (folder / "card.toml").unlink(missing_ok=True)
        if text:
            (folder / "card.toml").write_text(text, "utf-8")
    with outside_methods(tmp_path, monkeypatch):
        with gr.Blocks():
            shown = {each["key"]: each for each in Methods().cards.props["methods"]}
        mine = shown["with_card"]
        assert mine["title"] == "<b>Mine</b>" and mine["available"]
        assert (mine["family"], mine["example"]) == ("yours", ""), "no run of it is recorded"
        assert not {"without_card", "bad_card"} & shown.keys()
        assert "with_card" not in cards(), "no list of our own, which tests and recordings read"
        assert main(["list"]) == 0
    told = capsys.readouterr().err
    assert "The method without_card has no card: card.toml cannot be read" in told
    assert "The method bad_card has no card: The card of bad_card" in told


def test_strangers_get_none_of_them(tmp_path, monkeypatch):
    monkeypatch.setenv(OUTSIDE, str(tmp_path))
    monkeypatch.setenv("GRADIO_SERVER_NAME", "0.0.0.0")
    settings.take_folders()
    assert OUTSIDE not in settings.os.environ
    monkeypatch.setenv("GRADIO_SERVER_NAME", "127.0.0.1")
    settings.take_folders(["--methods", str(tmp_path)])
    assert settings.os.environ[OUTSIDE] == str(tmp_path)
    with pytest.raises(UserError, match="names no folder"):
        settings.take_folders(["--methods", str(tmp_path / "nowhere")])
