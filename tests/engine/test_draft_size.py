"""How much is drafted: how the size is chosen, from which numbers, and that it stays the same."""

import json
from dataclasses import replace
from itertools import pairwise
from statistics import geometric_mean

import pytest

from engine.core.memory import Memory
from engine.core.options import resolve
from engine.core.sampling import Sampling
from engine.core.text import TextRequest
from engine.loops import run_loop
from engine.methods import drafter
from engine.parts.gain_table import GAINS, GainTable, gain_table
from engine.parts.loading import load_models
from engine.rules import verifier
from engine.sizes import calibration, draft_size
from engine.sizes.calibration import Measurement, Patience, observed, recall, remember
from engine.sizes.draft_size import best, key_of, measure, settle_size, watched, with_step_costs
from presets import family
from tests.engine.family import offered
from tests.grids import some
from tests.verifiers.tiny import tiny_models


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Measure costs, unlike in most tests: on short texts, however busy the machine is, and even if an earlier test
    gave up."""
    monkeypatch.setenv("DRAFTSCOPE_MEASURE", "1")
    monkeypatch.setattr(draft_size, "TOKENS", 12)
    monkeypatch.setattr(calibration, "SECONDS", float("inf"))
    monkeypatch.setattr(draft_size, "_too_busy", set())


@pytest.fixture
def memory(tmp_path, monkeypatch):
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path))
    return calibration.MEMORY.path


@pytest.fixture(scope="module")
def models():
    return load_models(family(), {"draft": "draft"}, "float32", "cpu")


def declared(key: str, **given) -> dict:
    cls = drafter(key)
    return resolve(key, cls.options, given)


def gains_of(rate: float, *sizes: int) -> dict[int, float]:
    return {size: sum(rate**i for i in range(size + 1)) for size in sizes}


def knowing(monkeypatch, gains: dict[int, float], key: str = "chain") -> None:
    known = GainTable({key: gains}, ["Once upon a time", "Copy: a red boat\nOutput:"])
    monkeypatch.setattr(draft_size, "gain_table", lambda _: known)


def test_dear_drafts_are_short_and_free_ones_long():
    sizes = (1, 2, 4, 8, 16)
    gains = gains_of(0.8, *sizes)
    assert best(gains, {size: 10.0 for size in sizes}) == 16
    assert best(gains, {size: 10.0 + 9.0 * size for size in sizes}) == 1
    # by hand: 1.8/10.5, 2.44/11, 3.36/12, 4.33/14, 4.89/18
    assert best(gains, {size: 10.0 + 0.5 * size for size in sizes}) == 8
    # 1.8/11, 2.44/12, 3.36/14, 4.33/18, 4.89/26: 8 is better than 4 by two thousandths, which is no reason to pick it
    assert best(gains, {size: 10.0 + 1.0 * size for size in sizes}) == 4


def test_a_size_whose_cost_is_unknown_is_not_picked():
    assert best(gains_of(0.99, 1, 4, 16), {1: 1.0, 2: 1.0, 4: 1.0}) == 4


def test_a_given_size_stays(memory, models):
    options = declared("chain", length=3)
    assert settle_size(drafter("chain"), options, models, Sampling()) == options
    assert not memory.exists()


def test_costs_are_measured_once_and_remembered(memory, models, monkeypatch):
    cls = drafter("chain")
    knowing(monkeypatch, gains_of(0.7, 1, 2, 4))
    calls = []

    def measured(*arguments):
        calls.append(arguments)
        return measure(*arguments)

    monkeypatch.setattr(draft_size, "measure", measured)
    first = settle_size(cls, declared("chain"), models, Sampling())
    assert first["length"] in (1, 2, 4)
    (found,) = json.loads(memory.read_text()).values()
    costs = found["costs"]
    assert found["noise"] >= 0
    assert list(costs) == ["1", "2", "4"] and all(cost > 0 for cost in costs.values())
    assert settle_size(cls, declared("chain"), models, Sampling()) == first and len(calls) == 1


@pytest.mark.parametrize(
    ("seconds", "on_a_core", "over"),
    [(1.9, 0.1, False), (2.1, 0.4, True), (2.1, 2.0, False), (60.0, 50.0, False), (60.0, 6.0, True)],
)  # fmt: skip
def test_only_a_busy_machine_is_given_up(monkeypatch, seconds, on_a_core, over):
    monkeypatch.setattr(calibration, "SECONDS", 2.0)
    clocks = iter([10.0, 10.0 + seconds]), iter([5.0, 5.0 + on_a_core])
    begun = Patience(tuple(clock.__next__ for clock in clocks))
    assert begun.over is over


def test_a_busy_machine_gets_the_usual_size_and_remembers_nothing(memory, models, monkeypatch):
    """Measuring is tried once per process, so that the same options mean the same size."""
    cls, asked = drafter("chain"), []
    knowing(monkeypatch, gains_of(0.99, 1, 16))
    monkeypatch.setattr(draft_size, "_too_busy", set())
    monkeypatch.setattr(Patience, "over", property(lambda _: asked.append(1) or len(asked) > 3))
    for _ in range(2):
        assert settle_size(cls, declared("chain"), models, Sampling())["length"] == cls.usual_size
    assert len(asked) == 4 and not memory.exists()


def test_graphs_are_made_before_the_patience_begins(memory, models, monkeypatch):
    """Making graphs takes seconds on any machine, and then the thread that waits for them is not on a core."""
    events, prepare = [], draft_size.prepare
    knowing(monkeypatch, gains_of(0.7, 1, 4))

    def prepared(models, drafter, nodes, coming, greedy):
        events.append((nodes, coming.prompt))
        prepare(models, drafter, nodes, coming, greedy)

    class Begun(Patience):
        def __init__(self):
            events.append("patience")
            super().__init__()

    monkeypatch.setattr(draft_size, "prepare", prepared)
    monkeypatch.setattr(draft_size, "Patience", Begun)
    settle_size(drafter("chain"), declared("chain"), models, Sampling())
    *before, last = events
    assert last == "patience" and {nodes for nodes, _ in before} == {4}
    tokens = models.target.tokenizer
    prompts = draft_size.gain_table(models).prompts
    assert {length for _, length in before} == {len(tokens(one)["input_ids"]) for one in prompts}


def test_a_remembered_cost_decides(memory, models, monkeypatch):
    cls = drafter("chain")
    knowing(monkeypatch, gains_of(0.7, 1, 2, 4))
    key = key_of(cls, declared("chain"), models)
    memory.parent.mkdir(parents=True, exist_ok=True)
    for costs, length in (({"1": 1, "2": 50, "4": 90}, 1), ({"1": 1, "2": 1, "4": 1}, 4)):
        entry = {"costs": costs, "gains": {}, "noise": 0.1, "doubts": 0}
        memory.write_text(json.dumps({key: entry}))
        assert settle_size(cls, declared("chain"), models, Sampling())["length"] == length


def test_what_another_drafter_needs_changes_nothing(memory, models, monkeypatch):
    """A bench opens every model, a run only those that it needs; both must get the same size."""
    cls = drafter("chain")
    knowing(monkeypatch, gains_of(0.7, 1, 2))
    more = replace(models, folders={**models.folders, "diffusion": "elsewhere"})
    assert settle_size(cls, declared("chain"), models, Sampling()) == settle_size(
        cls, declared("chain"), more, Sampling()
    )
    assert len(json.loads(memory.read_text())) == 1


SIZED = [key for key in offered() if drafter(key).size_option is not None]


def first_of_each_kind() -> set[str]:
    """Return a drafter for each loop, shape of draft and set of parts: the others are measured by the same code."""
    kinds: dict[tuple, str] = {}
    for key, cls in zip(SIZED, map(drafter, SIZED), strict=True):
        kinds.setdefault((cls.loop, cls.shape, *sorted(cls.needs.values())), key)
    return {*kinds.values()}


@pytest.mark.parametrize("key", some(SIZED, first_of_each_kind().__contains__))
def test_every_drafter_with_a_size_can_be_measured(key):
    """On the embedded family, as in the first run on a machine."""
    cls = drafter(key)
    models = load_models(family(), cls.needs, "float32", "cpu")
    known = GainTable({key: gains_of(0.7, 1, 4)}, ["Once upon a time"])
    found = measure(cls, declared(key), models, known)
    assert set(found.costs) == {1, 4} == set(found.gains)
    assert all(cost > 0 for cost in found.costs.values())
    assert all(tokens >= 1 for tokens in found.gains.values())


def spelled(prompt: str) -> dict:
    """Encode a prompt with one token for each letter."""
    return {"input_ids": [ord(letter) % 16 for letter in prompt]}


@pytest.mark.parametrize("key", ["suffix", "aded", "token_recycling", "suffix_hybrid"])
def test_a_size_gains_what_its_own_texts_gain(key, monkeypatch):
    """Drafters that learn must not copy texts that another size, or the warm-up, wrote after the same prompts."""
    cls, models = drafter(key), tiny_models(16)
    models.target.tokenizer = spelled
    prompts = ["a red boat", "count to nine", "once upon"]
    found = measure(cls, declared(key), models, GainTable({key: gains_of(0.7, 1, 16)}, prompts))
    for size in (1, 16):
        memory, means = Memory(), []
        for prompt in prompts:
            made = cls.build(declared(key, **{cls.size_option: size}), models)
            text = spelled(prompt)["input_ids"]
            rule, most = verifier("greedy"), draft_size.TOKENS
            request = TextRequest(made, rule, Sampling(), text, most, memory=memory)
            steps = list(run_loop(models.target, request, recorded=False))
            means.append(sum(len(step.output) for step in steps) / len(steps))
        assert found.gains[size] == pytest.approx(geometric_mean(means))


GAINS_THAT_SAY_NOTHING = [
    "", "[1]", '{"gains": 3}', '{"gains": {"chain": {"many": 1}}, "prompts": []}',
    '{"gains": {"chain": {}}, "prompts": ["a"]}', '{"gains": {"chain": {"1": 1.5}}, "prompts": []}',
    '{"gains": {"chain": {"0": 1.5}}, "prompts": ["a"]}', '{"gains": {"chain": {"1": NaN}}, "prompts": ["a"]}',
    '{"gains": {"chain": {"1": -2}}, "prompts": ["a"]}',
]  # fmt: skip


@pytest.mark.parametrize("content", GAINS_THAT_SAY_NOTHING)
def test_gains_that_say_nothing_leave_the_usual_size(memory, models, tmp_path, content):
    (tmp_path / GAINS).write_text(content)
    given = replace(models, folders={"draft": str(tmp_path)})
    assert settled(given) == drafter("chain").usual_size
    if content in GAINS_THAT_SAY_NOTHING[:4]:
        assert gain_table(given) == GainTable({}, [])


@pytest.mark.parametrize("content", ["", "[1]", "{broken"])
def test_a_broken_memory_is_made_anew(memory, content):
    memory.parent.mkdir(parents=True, exist_ok=True)
    memory.write_text(content)
    assert recall("key") is None and remember("key", Measurement(COSTS))
    assert len(json.loads(memory.read_text())) == 1


GREEDY = Sampling()


def settled(models, sampling=GREEDY, key="chain"):
    """Return the size that a drafter gets."""
    cls = drafter(key)
    return settle_size(cls, declared(key), models, sampling)[cls.size_option]


def test_where_nothing_can_be_measured_the_usual_size_is_taken(
    memory, models, monkeypatch, tmp_path
):
    """Gains are those of greedy decoding and say nothing about drawn tokens; a host may do without measurements; unknown
    models cannot be told apart later, and a machine that cannot remember would resolve the same options otherwise each
    time."""
    elsewhere = replace(models, folders={"draft": str(tmp_path)})
    assert gain_table(elsewhere) == GainTable({}, [])
    usual = drafter("chain").usual_size
    assert settled(elsewhere) == usual
    assert settled(elsewhere, key="dyspec") == drafter("dyspec").usual_size
    knowing(monkeypatch, gains_of(0.99, 1, 16))
    assert settled(models, Sampling(temperature=1.0)) == usual
    with monkeypatch.context() as patch:
        patch.setenv("DRAFTSCOPE_MEASURE", "0")
        assert settled(models) == usual
    assert not memory.exists()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("DRAFTSCOPE_CACHE", str(tmp_path / "file" / "below"))
    assert settled(models) == usual


def test_the_family_ships_its_gains():
    needs = {"draft": "draft", "diffusion": "denoiser"}
    models = load_models(family(), needs, "float32", "cpu")
    known = gain_table(models)
    assert set(known.gains) >= {"chain", "dyspec", "dflash", "ddtree", "token_recycling"}
    assert len(known.prompts) == 6
    for curve in known.gains.values():
        assert list(curve) == list(draft_size.SIZES[: len(curve)])
        assert all(a < b for a, b in pairwise(curve.values()))


def test_a_drafter_that_chooses_at_every_step_is_told_what_steps_cost(memory, monkeypatch):
    """Measured once, with drafts of the whole size; not where a cost is given, nor where nothing is measured."""
    cls = drafter("dspark")
    models = load_models(family(), cls.needs, "float32", "cpu")
    knowing(monkeypatch, gains_of(0.7, 1, 2), "dflash")
    monkeypatch.setattr(draft_size, "COSTED", (1, 3))
    assert with_step_costs(cls, declared("dspark", row_cost=0.1), models) is models
    assert not memory.exists()
    told = with_step_costs(cls, declared("dspark"), models)
    assert set(told.step_costs) == {1, 3} and all(cost > 0 for cost in told.step_costs.values())
    monkeypatch.setattr(draft_size, "measure", None)
    assert with_step_costs(cls, declared("dspark"), models) == told
    monkeypatch.setenv("DRAFTSCOPE_MEASURE", "0")
    assert with_step_costs(cls, declared("dspark"), models) is models


# ---- A pair that nobody has measured, and measurements that were wrong --------------------------


@pytest.fixture
def own(models, tmp_path):
    """Return the embedded family in folders without gains."""
    names = {role: str(tmp_path / role) for role in ("target", "draft")}
    return replace(models, folders=names)


def test_a_pair_without_gains_is_measured_with_a_bar(memory, own, monkeypatch):
    monkeypatch.setattr(draft_size, "PROMPTS", draft_size.PROMPTS[:1])
    cls, heard = drafter("chain"), []
    options = declared("chain")
    size = settle_size(cls, options, own, Sampling(), lambda *news: heard.append(news))["length"]
    found = recall(key_of(cls, options, own))
    assert size == best(found.gains, found.costs) and set(found.costs) == set(draft_size.SIZES)
    assert found.gains[16] >= found.gains[1] > 1.0, "the draft is right now and then"
    shares = [share for _, share in heard]
    assert shares == sorted(shares) and shares[0] == 0 and 0.9 < shares[-1] < 1
    heard.clear()
    settle_size(cls, options, own, Sampling(), lambda *news: heard.append(news))
    assert heard == []


COSTS = {1: 4.0, 2: 5.0, 4: 7.0}


def test_steps_that_contradict_have_it_measured_again(memory, models, monkeypatch):
    knowing(monkeypatch, gains_of(0.7, 1, 2, 4))
    cls, options = drafter("chain"), declared("chain")
    key = key_of(cls, options, models)
    wrong = {1: 0.001, 2: 5e5, 4: 5e5}
    remember(key, Measurement(wrong))
    for turn in range(calibration.DOUBTS):
        settled = settle_size(cls, options, models, Sampling())
        assert settled["length"] == 1 and recall(key).doubts == turn
        observed(*watched(cls, options, settled, models), 20, 4.0)
    settle_size(cls, options, models, Sampling())
    healed = recall(key)
    assert healed.doubts == 0 and healed.costs[2] < 5e5
    assert healed.noise == calibration.MOST_NOISE, "it has learned how far off this machine can be"


def test_one_odd_run_or_a_short_one_changes_nothing(memory):
    remember("key", Measurement(COSTS))
    for _ in range(9):
        observed("key", 2, 20, 500.0)
        observed("key", 2, 20, 5.5)
        observed("key", 2, 3, 500.0)
        observed("key", 16, 20, 500.0)
        observed("other", 2, 20, 500.0)
    assert recall("key") == Measurement(COSTS)


def test_a_noisy_machine_is_believed_longer():
    calm, noisy = Measurement(COSTS), Measurement(COSTS, noise=1.0)
    assert calm.contradicted_by(2, 15.0) and not noisy.contradicted_by(2, 15.0)
    assert calm.contradicted_by(2, 2.0) and not calm.contradicted_by(2, 6.0)


def test_an_entry_that_makes_no_sense_is_measured_anew(memory, models, monkeypatch):
    knowing(monkeypatch, gains_of(0.7, 1, 2))
    cls, options = drafter("chain"), declared("chain")
    key, sound = key_of(cls, options, models), {"gains": {}, "noise": 0, "doubts": 0}
    costs = [{"1": 1e999}, {"1": "x"}, {"1": -1}, {}]
    memory.parent.mkdir(parents=True, exist_ok=True)
    for entry in (None, 3, {}, {"1": 2.0}, *(sound | {"costs": each} for each in costs)):
        memory.write_text(json.dumps({key: entry}))
        assert recall(key) is None
    assert settle_size(cls, options, models, Sampling())["length"] in (1, 2)
    assert recall(key).costs.keys() == {1, 2}
