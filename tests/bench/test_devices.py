"""The bench of the devices: a row for each, a figure for each drafter, and models that are as they were."""

from engine.bench import devices_suite as devices
from engine.bench.suite import Plan
from engine.fast.cpu import store
from engine.methods import drafters
from presets import family, prompts


def test_the_same_text_is_written_without_a_device():
    joins = store.join_products
    cards = {"story": prompts("story")}
    plan = Plan(prompts=1, rounds=1, tokens=4)
    rows = devices.measured(
        family(), cards, [drafters()["none"]], ["joined products", "nothing"], plan
    )
    assert [row["device"] for row in rows] == ["joined products", "nothing"]
    assert all(row["none"] > 0 for row in rows) and store.join_products is joins
