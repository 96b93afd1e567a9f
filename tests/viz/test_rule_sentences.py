"""A rule's own sentences, read from the trace, and the engine's sentences for its rules."""

import re

import pytest

from engine.rules.sentences import SENTENCES
from tests.viz.builder import Toy
from tests.viz.exhibited import ndjson

ALL = """(text) => {
  const model = Draftscope.traceModel(), said = [];
  model.feed(text);
  for (const step of model.steps) {
    for (let i = 0; i < step.view.count; i++) if (step.view.judged.has(i)) said.push(['node', step.nodes.status[i], Draftscope.sentenceOf(step, i)]);
    said.push(['final', step.view.final.kind, Draftscope.sentenceOf(step, 'final')]);
  }
  return said;
}"""
RULES = [("greedy", "chain"), ("sampler_match", "tree"), ("rejection", "tree")]
RULES += [("rejection", "iid"), ("rejection", "one_hot")]


def told(script, sentences, style="tree", **settings) -> list:
    lines = Toy(style=style, steps=12, **settings).lines()
    lines[0]["verifier"]["sentences"] = sentences
    return script.evaluate(ALL, ndjson(lines))


@pytest.mark.parametrize(("rule", "style"), RULES)
def test_the_engines_sentences_explain_every_verdict(script, rule, style):
    said = told(script, SENTENCES[rule], style, rule=rule)
    assert {"accepted", "rejected", "recovered"} <= {kind for _, kind, _ in said}
    for what, kind, text in said:
        assert not re.search(r"[{}]|undefined|null|NaN|–", text), text
        if what == "node" and "judged each time" not in text:
            assert f"{kind}." in text
        assert text != ""


def test_a_template_is_filled_with_what_the_judgement_used(script):
    sentences = {
        "without_replacement.kept": "kept {token} p {p} q {q} a {accept} c {coin}",
        "without_replacement.refused": "refused {token} p {p} q {q} a {accept} c {coin}",
        "bonus": "bonus {final}",
        "recovered": "after {token} came {final}",
    }
    lines = Toy(steps=12).lines()
    lines[0]["verifier"]["sentences"] = sentences
    said = iter(script.evaluate(ALL, ndjson(lines)))
    first = r"(kept|refused) ‘.+’ p .+ q .+ a .+ c [\d.]+( In its place the target wrote ‘.+’\.)?"
    later = (
        r"The (refusal|\d refusals) before took (q away from p for every token|the refused tokens? out of p): "
        r".+(is left|of what is left)\.( Of the draft’s [\d.]+, after "
        r"taking the refused tokens? away and scaling, q is [\d.]+\.)? (p is at least q.*|Chance to be kept: .+ ÷ .+ = .+; "
        r"the coin fell at .+: )(accepted|rejected)\.( In its place .+ ‘.+’\.)?"
    )
    pattern = re.compile(f"{first}|{later}")
    refusals = 0
    for step in lines[1:-1]:
        for _ in {judgement["node"] for judgement in step["judgements"]}:
            _, status, text = next(said)
            assert pattern.fullmatch(text), text
            if not text.startswith("The "):
                assert text.count("kept") == (status == "accepted")
            refusals += status == "rejected"
        _, kind, text = next(said)
        assert text.startswith("bonus ‘" if kind == "bonus" else "after ‘")
    assert refusals > 3


def test_odd_templates_do_no_harm(script):
    """Inserted text is not searched for placeholders; unknown placeholders and kinds of value are left alone."""
    fill = "([template, values]) => Draftscope.fillTemplate(template, values)"
    values = {"token": "{p}", "p": "0.5"}
    assert (
        script.evaluate(fill, ["{token} {p} {constructor} {", values]) == "{p} 0.5 {constructor} {"
    )
    generic = told(script, {})
    for odd in (7, "text", None, ["x"], {"without_replacement.kept": 3}, {"bonus": ""}):
        assert told(script, odd) == generic


def test_a_lossy_rule_without_sentences_is_never_explained_as_an_exact_one(script):
    lines = Toy(rule="greedy", steps=12).lines()
    lines[0]["verifier"]["lossless"] = False
    said = script.evaluate(ALL, ndjson(lines))
    assert not any("favourite" in text or "drew" in text for _, _, text in said)


def test_nodes_that_the_target_never_looked_at(script):
    lines = Toy(steps=2).lines()
    step = lines[1]
    step["nodes"]["p"] = [None] * len(step["nodes"]["p"])
    step["nodes"]["status"] = ["ignored"] * len(step["nodes"]["p"])
    step["judgements"], step["distributions"] = [], []
    step["output"] = {"tokens": [], "pieces": [], "final": "none"}
    one = "(s) => ((step) => [Draftscope.sentenceOf(step, 0), Draftscope.nodeName(step, 0, 'x', false), Draftscope.stepSentence(step)])(Draftscope.enrich(s, 0))"
    sentence, name, line = script.evaluate(one, step)
    assert sentence == "The target did not look at it in this step."
    assert ", p " not in name and "NaN" not in name + line
    assert "without a pass of the target" in line
