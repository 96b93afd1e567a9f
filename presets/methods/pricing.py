"""``python -m presets price [KEY ...]`` measures what every lossy method costs, on held-out prompts, against plain
decoding.

Each method writes with the settings of its card's example. The figures are printed as a table and written
beside the cards.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import partial

from engine.errors import unknown
from engine.methods import drafters
from engine.parts.loading import load_models
from engine.rules import verifiers
from engine.run import RunRequest, open_run
from engine.trace.price import Price, price
from presets import KINDS, examples, family, prompts
from presets.finished import PRICE, beside_card
from presets.listed import Preset
from presets.methods import Card, cards

PER_WORKLOAD, NEW_TOKENS = 2, 64


@dataclass(frozen=True)
class Text:
    prompt: list[int]
    steps: list[list[int]]  # tokens by step


def measure_prices(keys: Sequence[str]) -> dict[str, Price]:
    """Measure these lossy methods, or all of them, and print a table. Returns key -> price, and writes it beside
    the card, for the methods whose parts are here. Raises UserError for a key that belongs to no lossy method."""
    lossy = {card.key: card for card in cards().values() if card.exactness in ("lossy", "both")}
    for key in keys:
        if key not in lossy:
            raise unknown("lossy method", key, lossy)
    chosen = [card for key, card in lossy.items() if not keys or key in keys]
    written = [entry["prompt"] for kind in KINDS for entry in prompts(kind)[:PER_WORKLOAD]]
    able = {card.key: example_of(card) for card in chosen if _writes_text_here(card)}
    target, plain, costs = load_models(family(), {}).target, {}, {}
    for key, example in able.items():
        if example.temperature not in plain:
            plain[example.temperature] = [_text(_plain(example), prompt) for prompt in written]
        texts = [_text(example, prompt) for prompt in written]
        reference = [
            [token for step in text.steps for token in step] for text in plain[example.temperature]
        ]
        read = [text.prompt for text in texts], reference, [text.steps for text in texts]
        costs[key] = price(target, *read)
    print(table(costs, [card.key for card in chosen if card.key not in able]))
    for key, cost in costs.items():
        told = {"temperature": able[key].temperature, **_rounded(cost)}
        beside_card(key, PRICE).write_text(json.dumps(told, indent=1) + "\n", "utf-8")
    return costs


def example_of(card: Card) -> Preset:
    """Return the settings under which a method is measured: those of its example, with its lossy rule if it also has a
    lossless one."""
    example = examples().get(card.example) or _bare(card.key)
    rule = card.key if card.exactness == "both" and card.key in verifiers() else example.verifier
    return Preset(**{**asdict(example), "verifier": rule, "holds": tuple(example.holds)})


def _bare(key: str) -> Preset:
    return Preset(name=key, title="", kind="story", look_for="", drafter=key, prompt="")


def _writes_text_here(card: Card) -> bool:
    example = example_of(card)
    return not example.models and set(drafters()[example.drafter].needs) <= set(family().parts)


def _plain(example: Preset) -> Preset:
    changed = {"drafter": "none", "options": {}, "verifier": None, "rule_options": {}}
    return Preset(**{**asdict(example), **changed, "holds": ()})


def _text(example: Preset, prompt: str) -> Text:
    make = partial(RunRequest, prompt, family(), example.drafter, options=example.options)
    run = open_run(
        make(
            verifier=example.verifier,
            rule_options=example.rule_options,
            temperature=example.temperature,
            max_new_tokens=NEW_TOKENS,
        )
    )
    read = json.loads(run.header())["prompt"]["tokens"]
    return Text(read, [json.loads(line)["output"]["tokens"] for line in run.steps()])


def _rounded(found: Price) -> dict:
    return {name: round(value, 4) for name, value in asdict(found).items()}


def table(found: dict[str, Price], missing: Sequence[str]) -> str:
    heads = (
        "method",
        "tokens/step",
        "texts alike",
        "tokens alike",
        "bits/byte",
        "plain",
        "divergence",
    )
    lines = ["{:22}{:>12}{:>12}{:>13}{:>10}{:>8}{:>12}".format(*heads)]
    for key, cost in found.items():
        lines.append(
            f"{key:22}{cost.tokens_per_step:12.2f}{cost.exact:12.0%}{cost.alike:13.0%}{cost.bits_per_byte:10.3f}"
            f"{cost.plain_bits_per_byte:8.3f}{cost.divergence:12.2f}"
        )
    lines.append(
        "alike: as plain decoding writes them. bits/byte: by the target. divergence: bits a step"
    )
    lines.append(
        "by which the target finds the tokens less likely than its favourites in their places."
    )
    lines += [
        f"{key}: not measured: it writes no text, or its part is not shipped" for key in missing
    ]
    return "\n".join(lines)
