"""The price of lossy methods, compared with texts worked out by hand, and the command that prints it."""

import json
import math

import pytest

from engine.parts.loading import load_models
from engine.trace.price import judged, price
from presets import family
from presets.__main__ import main
from presets.methods import cards, pricing

PROMPT = [40, 300, 12]


@pytest.fixture(scope="module")
def target():
    return load_models(family(), {}).target


def law(target, text):
    logits, _ = target.session(64).feed(text, range(-1, len(text) - 1))
    return logits.double().softmax(-1)


def written(target, count, rank):
    """Return a text of the target's likeliest tokens, except that the last token is its choice of this rank."""
    text = list(PROMPT)
    for place in range(count):
        order = law(target, text)[-1].argsort(descending=True)
        text.append(int(order[rank if place == count - 1 else 0]))
    return text[len(PROMPT) :]


def test_the_price_of_one_other_token(target):
    plain, other = written(target, 4, 0), written(target, 4, 2)
    found = price(target, [PROMPT], [plain], [[other[:3], other[3:]]])
    p = law(target, [*PROMPT, *other])[len(PROMPT) - 1 : -1]
    bits = [-math.log2(p[place, token]) for place, token in enumerate(other)]
    size = len(target.tokenizer.decode(other).encode())
    assert (found.exact, found.alike) == (0.0, 3 / 4)
    assert found.bits_per_byte == pytest.approx(sum(bits) / size, rel=1e-3)
    below = math.log2(p[3].max() / p[3, other[3]])
    assert found.divergence == pytest.approx(below / 2, rel=1e-3), "two steps"
    assert found.tokens_per_step == 2


def test_plain_decoding_costs_nothing(target):
    plain = written(target, 4, 0)
    found = price(target, [PROMPT], [plain], [[[token] for token in plain]])
    assert (found.exact, found.alike) == (1.0, 1.0)
    assert found.divergence == found.plain_divergence == pytest.approx(0.0, abs=1e-4)
    assert (
        found.bits_per_byte
        == found.plain_bits_per_byte
        == judged(target, PROMPT, plain).bits / judged(target, PROMPT, plain).size
    )


def test_the_command_prints_and_keeps_them(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(pricing, "beside_card", lambda key, name: tmp_path / f"{key}.{name}")
    monkeypatch.setattr(pricing, "KINDS", ("story",))
    monkeypatch.setattr(pricing, "PER_WORKLOAD", 1)
    monkeypatch.setattr(pricing, "NEW_TOKENS", 24)
    assert main(["price", "bild", "gsd"]) == 0
    told = capsys.readouterr().out
    assert "gsd: not measured" in told, "it writes pictures"
    kept = json.loads((tmp_path / "bild.price.json").read_text("utf-8"))
    (row,) = (line.split() for line in told.splitlines() if line.startswith("bild"))
    assert float(row[1]) == pytest.approx(kept["tokens_per_step"], abs=0.006)
    assert kept["divergence"] > 0 and kept["tokens_per_step"] > 1
    assert kept["temperature"] == 0
    assert main(["price", "chain"]) == 2


def test_every_lossy_card_can_be_priced():
    lossy = [card for card in cards().values() if card.exactness in ("lossy", "both")]
    assert {"bild", "ead", "typical", "rapid", "gad", "lud"} <= {card.key for card in lossy}
    for card in lossy:
        example = pricing.example_of(card)
        assert example.drafter
        if card.exactness == "both":
            assert example.verifier == card.key
