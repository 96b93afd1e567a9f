"""The drawing code's own functions, called in the browser."""

from itertools import pairwise

import pytest

from tests.viz.builder import Toy

LAYOUT = """
(parents) => {
  const children = new Map([[-1, []]]), heights = parents.map((_, i) => 14 + (i * 7) % 17);
  heights.root = 28;
  parents.forEach((p, i) => { if (!children.has(p)) children.set(p, []); children.get(p).push(i); });
  return {...Draftscope.layout(children, heights, 5), heights};
}
"""


def random_parents(count: int, seed: int) -> list[int]:
    import random

    draw = random.Random(seed)
    return [draw.randrange(-1, i) for i in range(count)]


@pytest.mark.parametrize("seed", range(8))
def test_layout_neither_overlaps_nor_leaves_a_parent_off_centre(script, seed):
    parents = random_parents(20 + 30 * seed, seed)
    place = script.evaluate(LAYOUT, parents)
    y, heights = place["y"], place["heights"]
    depth = []
    for parent in parents:
        depth.append(1 if parent < 0 else depth[parent] + 1)
    for level in set(depth):
        row = sorted((i for i in range(len(y)) if depth[i] == level), key=lambda i: y[i])
        for above, below in pairwise(row):
            assert y[below] - y[above] >= (heights[above] + heights[below]) / 2 + 5 - 1e-6
    for parent in {*parents}:
        below = [i for i, p in enumerate(parents) if p == parent]
        middle = (y[below[0]] + y[below[-1]]) / 2
        assert middle == pytest.approx(0 if parent < 0 else y[parent])


def test_nodes_of_a_chain_keep_their_places_from_step_to_step(script):
    places = script.evaluate(
        """(text) => {
          const host = document.createElement('div'); document.body.append(host);
          const view = Draftscope.mountWatch(host, {ids: false, autoplay: false, keys: false});
          view.feed(text);
          const read = () => [...host.querySelectorAll('[data-node]')].map(g => g.getAttribute('transform'));
          view.goto(5); const one = read(); view.goto(6); const two = read(); view.goto(5);
          const out = [one, read(), two]; view.destroy(); host.remove(); return out; }""",
        Toy(style="chain", depth=4).ndjson(),
    )
    assert places[0] == places[1]


BYTES = "⟨f0⟩⟨9f⟩⟨8c⟩"
SPLIT = {
    "traces of today": (
        ["A", " tree: ", "", "🌳", "", "🌲", "", "🌴", "! ", "", "🌵", "", "🌷", " end"],
        "A tree: 🌳🌲🌴! 🌵🌷 end",
    ),
    "older traces": (
        ["A", " tree: ", BYTES, "⟨b3⟩", BYTES, "⟨b2⟩", BYTES, "⟨b4⟩", "! ", BYTES, "⟨b5⟩", BYTES]
        + ["⟨b7⟩", " end"],
        "A tree: 🌳🌲🌴! 🌵🌷 end",
    ),
    "a byte that nothing completes": ([BYTES, "a", "⟨ac⟩", "b", "⟨e2⟩"], f"{BYTES}a⟨ac⟩b⟨e2⟩"),
}


@pytest.mark.parametrize("kind", SPLIT)
def test_the_text_strip_shows_beginnings_of_the_text_wherever_one_scrubs_to(script, kind):
    """The same texts while a run is written, and afterwards, backwards and forwards."""
    pieces, text = SPLIT[kind]
    steps = [
        step_of([], [], {"tokens": [i], "pieces": [piece], "final": "bonus"}) | {"index": i}
        for i, piece in enumerate(pieces)
    ]
    live, back, on = script.evaluate(
        """(steps) => {
          const box = document.createElement('div'), model = Draftscope.traceModel();
          const strip = Draftscope.textStrip(box, { onPick() {}, onHover() {} });
          const at = (count) => { strip.draw(model, count, count); return box.querySelector('.ds-output').textContent; };
          const live = steps.map((step, i) => { model.add(step); return at(i + 1); });
          model.add({ kind: 'summary' });
          const back = steps.map((_, i) => at(i + 1)).reverse();
          return [live, back.reverse(), steps.map((_, i) => at(i + 1))]; }""",
        steps,
    )
    assert all(text.startswith(shown) for shown in (*live, *back, *on))
    assert on[-1] == text and on == back
    assert all(a <= b for a, b in zip(map(len, live), map(len, live[1:]), strict=False))


def test_a_token_that_adds_nothing_yet_shows_its_bytes_where_it_stands_alone(script):
    final = {"tokens": [5], "pieces": [""], "final": "bonus"}
    place = {"node": -1, "p": [[4, "a", 0.1], [5, "⟨e2⟩", 0.9]], "q": []}
    accepted = {"tokens": [0], "pieces": [""], "final": "none"}
    assert script.evaluate(
        """(steps) => {
          const model = Draftscope.traceModel();
          steps.forEach(model.add);
          return [model.steps[0].view.final.piece, model.rootPiece(1), model.rootPiece(2)]; }""",
        [
            step_of([], [], final, [place]),
            step_of([{"piece": "⟨82⟩", "parent": -1, "status": "accepted"}], [], accepted),
        ],
    ) == ["⟨e2⟩", "⟨e2⟩", "⟨82⟩"]


def step_of(nodes: list[dict], judgements: list[dict], output: dict, distributions=()) -> dict:
    """Return a step from a short description. node: piece, parent, status and optionally p and q."""
    depth: list[int] = []
    for node in nodes:
        depth.append(1 if node["parent"] < 0 else depth[node["parent"]] + 1)
    return {
        "kind": "step",
        "index": 0,
        "position": 1,
        "nodes": {
            "token": list(range(len(nodes))),
            "piece": [node["piece"] for node in nodes],
            "parent": [node["parent"] for node in nodes],
            "depth": depth,
            "q": [node.get("q") for node in nodes],
            "p": [node.get("p", 0.1) for node in nodes],
            "status": [node["status"] for node in nodes],
            "source": [None] * len(nodes),
        },
        "judgements": judgements,
        "output": output,
        "distributions": list(distributions),
        "milliseconds": {"draft": 1, "verify": 1, "judge": 1, "commit": 1},
        "drafter": {},
    }


def why(script, step: dict, node, temperature: float = 0.8) -> str:
    """Return the sentence for a node, in a run whose rule has no sentences of its own."""
    run = {"verifier": {"lossless": True}, "sampling": {"temperature": temperature}}
    return script.evaluate(
        "([s, n, run]) => Draftscope.sentenceOf(Draftscope.enrich(s, 0, run), n)", [step, node, run]
    )


def one(piece="dog", status="rejected", **more) -> dict:
    return {"piece": piece, "parent": -1, "status": status, **more}


def weigh(rule, p, q, accept, coin, node=0) -> dict:
    return {"node": node, "rule": rule, "p": p, "q": q, "accept": accept, "coin": coin}


CAT = {"tokens": [7], "pieces": ["cat"], "final": "recovered"}
DOG_KEPT = {"tokens": [0, 7], "pieces": ["dog", "cat"], "final": "bonus"}


def test_sentence_of_a_refusal_by_coin(script):
    step = step_of([one()], [weigh("iid", 0.22, 0.41, 0.54, 0.61)], CAT)
    assert why(script, step, 0) == (
        "q gave ‘dog’ 0.41, p only 0.22, so it was to be kept with probability 0.54; the coin fell at "
        "0.61: rejected. In its place a new token was drawn from what is left of p after taking q "
        "away: ‘cat’."
    )
    assert why(script, step, "final") == (
        "‘dog’ was refused here, so a new token was drawn from what is left of p after taking q away: "
        "‘cat’."
    )


def test_sentence_of_a_token_that_was_kept(script):
    lucky = step_of([one(status="accepted")], [weigh("iid", 0.2, 0.4, 0.5, 0.31)], DOG_KEPT)
    assert why(script, lucky, 0) == (
        "q gave ‘dog’ 0.40, p only 0.20, so it was to be kept with probability 0.50; the coin fell at "
        "0.31: accepted."
    )
    sure = step_of([one(status="accepted")], [weigh("iid", 0.5, 0.4, 1, 0.9)], DOG_KEPT)
    assert why(script, sure, 0) == (
        "q gave ‘dog’ 0.40 and p even more, 0.50, so it was sure to be kept: accepted."
    )
    assert "also gave the token after them" in why(script, sure, "final")


def test_sentence_of_a_one_hot_proposal(script):
    step = step_of([one()], [weigh("one_hot", 0.22, 1, 0.22, 0.61)], CAT)
    assert why(script, step, 0) == (
        "‘dog’ was picked, not drawn, so q counts as 1; p gave it 0.22, so it was to be kept with "
        "probability 0.22; the coin fell at 0.61: rejected. In its place a new token was drawn from "
        "p without the refused tokens: ‘cat’."
    )


@pytest.mark.parametrize("temperature", [0, 0.8])
def test_sentence_where_the_target_names_its_token(script, temperature):
    top = [{"node": -1, "p": [[7, "cat", 0.62], [0, "dog", 0.21]], "q": [], "residual": []}]
    step = step_of([one(p=0.21)], [weigh("some", 0.0, None, 0, None)], CAT, top)
    said = why(script, step, 0, temperature)
    start = "The target’s favourite here was" if temperature == 0 else "The target drew its own"
    assert said.startswith(start)
    assert "‘cat’ (p 0.62)" in said and "not ‘dog’ (p 0.21)" in said and said.endswith("rejected.")
    kept = step_of([one(status="accepted")], [weigh("some", 1.0, None, 1, None)], DOG_KEPT)
    assert why(script, kept, 0, temperature).endswith("accepted.")
    final = why(script, step, "final", temperature)
    assert ("favourite" in final) == (temperature == 0) and "‘cat’ (p 0.62)" in final
    top = [{"node": -1, "p": [[7, "cat", 0.3541], [0, "dog", 0.3517]], "q": [], "residual": []}]
    close = step_of([one(p=0.3517)], [weigh("some", 0.0, None, 0, None)], CAT, top)
    assert "‘cat’ (p 0.3541), not ‘dog’ (p 0.3517)" in why(script, close, 0, temperature)


def test_sentences_of_ignored_tokens(script):
    nodes = [
        one("dog", "rejected"),
        {"piece": "ran", "parent": 0, "status": "ignored"},
        {"piece": "far", "parent": 1, "status": "ignored"},
        one("cat", "accepted"),
        one("cow", "ignored"),
    ]
    judged = [weigh("iid", 0.1, 0.4, 0.25, 0.6), weigh("iid", 0.4, 0.3, 1, 0.2, node=3)]
    output = {"tokens": [3, 9], "pieces": ["cat", "sat"], "final": "bonus"}
    step = step_of(nodes, judged, output)
    for node, reason in (
        (1, "it stands below ‘dog’, which was refused."),
        (2, "further up, ‘dog’ was refused."),
        (4, "‘cat’ was accepted, and siblings after the kept one are not asked."),
    ):
        said = why(script, step, node)
        assert said.startswith("The target’s pass read it too (p 0.10)") and said.endswith(reason)
    assert why(script, step, 3) == (
        "The refusal before took q away from p for every token: the target’s 0.10 for ‘cat’ is 0.40 of what is left. "
        "p is at least q, 0.30, so it was sure to be kept: accepted."
    )
    ended = step_of(
        [one("end", "accepted"), {"piece": "more", "parent": 0, "status": "ignored"}],
        [weigh("iid", 0.9, 0.4, 1, 0.2)],
        {"tokens": [0], "pieces": ["end"], "final": "none"},
    )
    assert "came to its end before" in why(script, ended, 1)


def test_sentence_of_a_token_drawn_twice(script):
    twice = [weigh("iid", 0.1, 0.4, 0.25, 0.6), weigh("iid", 0.0, 0.4, 0.0, 0.3)]
    said = why(script, step_of([one()], twice, CAT), 0)
    assert said.startswith("It was drawn 2 times and judged each time. First time: ")
    assert "Second time: The refusal before took q away from p for every token" in said
    assert (
        ", nothing is left. Chance to be kept: 0 ÷ 0.40 = 0; the coin fell at 0.30: rejected."
        in said
    )


def test_sentence_of_a_step_without_a_draft(script):
    step = step_of([], [], {"tokens": [7], "pieces": ["cat"], "final": "bonus"})
    assert why(script, step, "final").startswith("Nothing was drafted in this step")
    assert why(script, step, -1).startswith("The last token of the text so far.")
    drafted = step_of([one()], [weigh("speculative", 0.1, 0.4, 0.25, 0.6)], CAT)
    sentence = """([steps, stop]) => {
      const model = Draftscope.traceModel();
      const lines = [...steps, { kind: "summary", stop }].map((line) => JSON.stringify(line));
      model.feed(lines.join("\\n") + "\\n");
      return Draftscope.sentenceOf(model.steps.at(-1), "final");
    }"""
    last = script.evaluate(sentence, [[drafted, step], "length"])
    assert last.startswith("Just one token was left to write, so nothing was drafted")
    for steps, stop in (([drafted, step], "eos"), ([step, step], "length")):
        assert script.evaluate(sentence, [steps, stop]).startswith("Nothing was drafted in this")


def test_every_word_of_the_glossary_is_one_line(script):
    words = script.evaluate("Draftscope.GLOSSARY")
    assert {"accepted", "rejected", "ignored", "recovered", "bonus", "root", "p", "q"} <= set(words)
    assert all(0 < len(line) < 140 and "\n" not in line for line in words.values())
