"""Visitors' own models on the server: who holds which models, how many are held, and the conversation."""

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest
from transformers import LlamaConfig

from app.inspected import inspected
from app.live import opened
from app.menu import drafter_menu
from app.own import MOST_VISITORS, Choice, OwnModels, page_converses
from app.own import own as page_own
from app.own_models import _set, refuse_gone, shown
from app.settings import LIMITS, allowed_models, model_paths
from engine.core.ending import typed
from engine.errors import UserError
from engine.parts.loading import ModelPaths
from engine.parts.models import open_model
from engine.parts.size_limits import Allowed
from engine.run import RunRequest, open_run
from presets import family
from tests.engine.eagle_cells import LAYOUTS, checkpoint, tensors_of
from tests.frugal import none_opened
from tests.pairs import SIZES, make, strangers_pair


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return [str(one) for one in strangers_pair(tmp_path_factory.mktemp("pair"))]


@pytest.fixture
def pair(folders, uncompiled):
    """Return the folders of a pair of models, which each test opens several times."""
    return folders


def room(pair, **changes) -> OwnModels:
    return OwnModels(Allowed((pair[0].rpartition("/")[0],)), replace(LIMITS, **changes))


def held() -> int:
    return open_model.cache_info().held


def test_a_pair_is_shared_and_put_away(pair):
    own, heard = room(pair), []
    with none_opened():  # a shelf that earlier tests have filled would put one of theirs away
        told = own.load("a", *pair, tell=lambda *news: heard.append(news))
        assert told["chat"] and told["target"] == "stranger" and told["draft"] == "stranger-small"
        assert told["sampling"]["temperature"] == 0.7 and heard
        own.load("b", *pair)
        assert held() == 2 and sorted(own.resident()) == sorted(pair)
        own.leave("a")
        assert held() == 2, "b still uses them"
        own.leave("b")
        assert held() == 0 and own.resident() == []


def test_no_more_than_so_many_are_held_and_who_has_left_gives_the_place_up_first(pair):
    own = room(pair, resident_models=1)
    own.load("a", pair[0], "")
    for asked in ((pair[1], ""), pair):
        with pytest.raises(UserError, match="as many as"):
            own.load("b", *asked)
    own.leave("a")
    own.load("b", pair[1], "")
    assert own.resident() == [pair[1]]
    token = own.of("b").token
    own.cut_off("b")
    own.load("a", pair[0], "")
    assert own.resident() == [pair[0]] and not own.holds("b", token)
    own.leave("a")
    own = room(pair, resident_models=1, kept_seconds=-1)  # who was away for long
    own.load("a", pair[0], "")
    own.load("b", pair[1], "")
    assert own.resident() == [pair[1]]
    own.leave("b")


@pytest.mark.parametrize("dtype", ["bfloat16", "float32"])
def test_the_menu_promises_no_more_than_the_target_s_numbers_keep(tmp_path, monkeypatch, dtype):
    """A GPU takes the dtype of the configuration, a CPU float32."""
    (tmp_path / "config.json").write_text(json.dumps({"dtype": dtype}))
    monkeypatch.setattr("app.menu.model_paths", lambda *_: ModelPaths(str(tmp_path)))
    for gpu, word in (
        (False, "lossless"),
        (True, ("lossless", "equal up to rounding")[dtype == "bfloat16"]),
    ):
        monkeypatch.setattr("torch.cuda.is_available", lambda gpu=gpu: gpu)
        chain = drafter_menu()["chain"]
        assert chain["word"] == chain["rules"]["greedy"].partition(",")[0] == word
        assert chain["exact"] == (word == "lossless")


def test_what_the_page_leaves_out_is_named(tmp_path, uncompiled):
    config = LlamaConfig(vocab_size=4160, eos_token_id=None, **SIZES)
    folder = make(tmp_path / "m", config, 1, do_sample=True, min_p=0.6)
    file = folder / "generation_config.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "num_beams": 4}))
    own = OwnModels(Allowed((str(tmp_path),)))
    told = own.load("a", str(folder), "")
    assert told["left_out"] == ["min_p = 0.6", "num_beams = 4"]
    own.leave("a")


def test_it_is_off_where_strangers_come_in(pair, monkeypatch):
    monkeypatch.delenv("GRADIO_SERVER_NAME", raising=False)
    assert allowed_models({})
    for name, value in (("SPACE_ID", "a/b"), ("GRADIO_SERVER_NAME", "0.0.0.0")):
        with monkeypatch.context() as there:
            there.setenv(name, value)
            assert not allowed_models({})
    assert not allowed_models({"DRAFTSCOPE_OWN_MODELS": "off"})
    assert allowed_models({"DRAFTSCOPE_OWN_MODELS": "org/*, /models"}).patterns == (
        "org/*",
        "/models",
    )
    with pytest.raises(UserError, match="host has not allowed"):
        OwnModels(Allowed()).load("a", *pair)


def request(prompt: str) -> RunRequest:
    return RunRequest(prompt, family(), drafter="chain", options={"length": 2}, max_new_tokens=6)


def test_the_pages_own_target_converses_behind_a_system_turn():
    own = OwnModels(Allowed())
    assert page_converses()
    choice = own.of("a")

    def asked(prompt: str) -> RunRequest:
        return RunRequest(prompt, model_paths(), drafter="prompt_lookup", max_new_tokens=12)

    assert own.applied("a", asked("x")).prompt == "x", "not before the visitor wants to converse"
    choice.chat, choice.system, choice.stop = True, "Answer in one sentence.", ("never said",)
    wanted = own.applied("a", asked("Tell me about a dog."))
    assert wanted.models == model_paths() and wanted.stop == ("never said",)
    assert [turn["role"] for turn in wanted.messages] == ["system", "user"]
    run = open_run(wanted)
    own.answered("a", "".join([run.header(), *run.steps(), run.summary()]))
    assert [turn["role"] for turn in choice.turns] == ["user", "assistant"]
    assert not any(end in choice.turns[1]["content"] for end in ("<|end|>", "<|endoftext|>"))
    again = own.applied("a", asked("And then?"))
    assert [turn["role"] for turn in again.messages] == ["system", "user", "assistant", "user"]


def test_a_conversation_grows_by_what_was_answered(pair):
    own = room(pair)
    own.load("a", *pair)
    for turn, said in enumerate(["Hello", "And\u2028then?"]):
        wanted = own.applied("a", request(said))
        assert wanted.prompt == "" and wanted.models.target == pair[0]
        run = open_run(wanted)
        trace = "".join([run.header(), *run.steps(), run.summary()])
        own.answered("a", trace)
        own.answered("a", trace)  # a second event reports the same end
        turns = own.of("a").turns
        assert [one["role"] for one in turns] == ["user", "assistant"] * (turn + 1)
        assert turns[-2]["content"] == said
        text = json.loads(trace.split("\n")[-2])["text"]
        assert text.removeprefix(" ").startswith(turns[-1]["content"])
    assert own.applied("a", request("x"), talk=False).prompt == "x", (
        "races take the prompt as it is"
    )
    assert own.applied("b", request("x")).models == family(), "nobody else's"
    own.leave("a")


def test_a_space_before_an_answer_is_not_part_of_the_turn():
    """Llama 2 answers behind "[/INST]" with " Hello", and its template writes that space again."""
    own, asked = OwnModels(Allowed()), {"role": "user", "content": "Hi"}
    own.of("a").chat = True
    run = {"kind": "run", "prompt": {"messages": [asked]}}
    summary = {"kind": "summary", "text": " Hello there"}
    own.answered("a", "\n".join(map(json.dumps, (run, summary))))
    assert own.of("a").turns == [asked, {"role": "assistant", "content": "Hello there"}]


def test_a_stop_string_means_on_the_page_what_it_means_on_the_command_line():
    lines = [r"\n\nUser:", r"\\nabla", "---", " there", ""]
    event = SimpleNamespace(_data={"stop": lines})
    told = json.loads(_set(SimpleNamespace(session_hash="lines"), event))
    assert told["stop"] == ["\n\nUser:", r"\nabla", "---", " there"] and not told["problem"]
    assert told["stop"] == [typed(line) for line in lines if line]


def test_a_pair_and_a_conversation_wait_for_a_browser_that_was_cut_off(pair):
    own = room(pair)
    own.load("a", *pair)
    own.of("a").turns = [{"role": "user", "content": "Hello"}]
    token = own.of("a").token
    own.cut_off("a")
    own.cut_off("nobody")
    own.sweep()
    assert own.holds("a", token) and own.of("a").turns and own.of("a").paths.target == pair[0]
    late = room(pair, kept_seconds=-1)
    late.of("b").chat = True
    token = late.of("b").token
    late.sweep()
    assert late.holds("b", token), "still connected"
    late.cut_off("b")
    late.sweep()
    assert not late.holds("b", token) and not late.of("b").chat
    own.leave("a")


def test_a_model_that_is_being_opened_is_put_away_by_nobody(pair):
    own, kept = room(pair, resident_models=2), []

    def tell(task: str, share: float) -> None:
        if task.startswith("Loading"):
            own.leave("b")
            own.sweep()
            kept.append(own.resident())

    before = held()
    own.load("a", *pair, tell=tell)
    assert kept == [[], [pair[0]]] and held() == before + 2
    own.leave("a")
    assert held() == before and own.resident() == []


def test_a_pair_that_cannot_be_opened_leaves_nothing_behind(pair, tmp_path):
    own, before = room(pair), held()
    with pytest.raises(UserError):
        own.load("a", pair[0], str(tmp_path))
    assert held() == before and own.resident() == []


def crowded(own: OwnModels, begin) -> list[str]:
    """Let many visitors come, and return whose conversation is kept: "ann", who is here, or "cut", who is not, or
    both."""
    for name in ("ann", "cut"):
        own.of(name).chat = True
    for number in range(MOST_VISITORS + 9):
        begin(own, f"made up {number}")
    return [name for name in ("ann", "cut") if own.read(name).chat]


def test_made_up_visitors_erase_nobody_s_conversation():
    def house() -> OwnModels:
        return OwnModels(Allowed(), here={"ann"}.__contains__)

    def talks(own: OwnModels, session: str) -> None:
        own.of(session).chat = True

    assert crowded(house(), OwnModels.read) == ["ann", "cut"], "reading keeps nothing"
    assert crowded(house(), OwnModels.of) == ["ann", "cut"], "whoever chose nothing goes first"
    assert crowded(house(), talks) == ["ann"]


def test_a_page_that_is_loaded_anew_gets_back_what_it_had(pair):
    own = room(pair)
    own.load("a", *pair)
    held = own.of("a")
    held.turns, held.stop = [{"role": "user", "content": "Hello"}], ("x",)
    back = own.bring_back("new", held.token)
    assert (back.paths, back.turns, back.stop) == (held.paths, held.turns, held.stop)
    assert own.of("new") is back and own.holds("new", back.token) and back.token != held.token
    own.cut_off("a")
    assert own.bring_back("other", "a token that nobody has") is None
    own.leave("a")
    assert sorted(own.resident()) == sorted(pair)
    own.leave("new")


def test_what_the_visitor_still_sees_and_is_gone_is_told_before_the_next_run():
    seen = {"token": "gone", "loaded": {"target": "my-model"}, "turns": [{}, {}]}
    with pytest.raises(UserError, match="^No longer here: my-model and the conversation"):
        refuse_gone("somebody", json.dumps(seen))
    with pytest.raises(UserError, match="^No longer here: what was set"):
        refuse_gone("somebody", json.dumps({**seen, "loaded": None, "turns": []}))
    choice = page_own.of("somebody")
    choice.chat = True
    before = shown("somebody")
    refuse_gone("somebody", before)
    refuse_gone("anybody", shown("anybody"))
    for odd in ("", None, 3, "[]", "{}", json.dumps({**seen, "token": 3})):
        refuse_gone("somebody", odd)
    page_own.leave("somebody")
    with pytest.raises(UserError):
        refuse_gone("somebody", before)


def test_a_turn_said_again_is_answered_anew():
    user, answer, system = (
        {"role": role, "content": role} for role in ("user", "assistant", "system")
    )
    other = {"role": "user", "content": "other"}
    assert Choice().asking("user") == [user]
    assert Choice(turns=[user, answer]).asking("user") == [user]
    assert Choice(turns=[user, answer]).asking("other") == [user, answer, other]
    assert Choice(turns=[user, answer, other, answer]).asking("user")[-1:] == [user]
    assert Choice(turns=[user, answer], system="system").asking("user") == [system, user]


def test_a_second_run_of_the_same_turn_takes_the_place_of_its_answer():
    own, told = OwnModels(Allowed()), []
    own.of("a").chat = True
    for drafter in ("none", "prompt_lookup"):
        asked = RunRequest("Tell me about a dog.", model_paths(), drafter, max_new_tokens=12)
        run = open_run(own.applied("a", asked))
        trace = "".join([run.header(), *run.steps(), run.summary()])
        own.answered("a", trace)
        told.append(json.loads(trace.splitlines()[-1]))
        assert [turn["role"] for turn in own.of("a").turns] == ["user", "assistant"]
    assert told[0]["text"] == told[1]["text"]


def test_drafters_that_lack_a_part_beside_an_own_target_cannot_be_run(pair):
    own = room(pair)
    own.load("a", pair[0], "")
    missing = own.of("a").missing
    assert "chain" in missing and "none" not in missing and "prompt_lookup" not in missing
    own.of("a").chat = False
    for key, why in missing.items():
        with pytest.raises(UserError) as told:
            opened([replace(own.applied("a", request("x")), drafter=key, options={})])
        parts = why.removeprefix("needs ").partition(", which")[0]
        assert parts in str(told.value) and "stranger" in str(told.value)
        assert "--" not in str(told.value), "words of the command line"
    own.load("a", *pair)
    assert "chain" not in own.of("a").missing and "medusa" in own.of("a").missing
    assert Choice().missing == {}
    own.leave("a")


def test_what_a_drafter_is_is_told_for_allowed_folders_only(pair, tmp_path):
    target, shelf = pair[0], tmp_path / "shelf"
    config, shapes = LAYOUTS["eagle3"]()
    drafter = checkpoint(shelf / "cell", config, tensors_of(shapes))
    allowed = Allowed((str(shelf), target))
    told = inspected(target, str(drafter), allowed)
    assert told[0].startswith("cell is an EAGLE-3 drafter.")
    assert any("does not fit the target stranger" in line for line in told)
    assert inspected(target, "", allowed)[0].startswith("stranger is a causal language model.")
    assert inspected(target, str(drafter), Allowed((target,))) == []
    (drafter / "config.json").rename(tmp_path / "secret.json")
    (drafter / "config.json").symlink_to(tmp_path / "secret.json")
    assert inspected(target, str(drafter), allowed) == [], "a link leads out of the folder"
    assert inspected(None, 3, allowed) == inspected("org/model", "", allowed) == []
