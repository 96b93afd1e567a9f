"""A target behind an engine: the text of the same model here, and one sentence for whatever goes wrong."""

import json
import signal
import socket
import threading
import time
from functools import cache

import pytest

from engine.__main__ import main
from engine.core.sampling import Sampling
from engine.errors import UserError
from engine.methods import drafters
from engine.parts.loading import ModelPaths
from engine.parts.size_limits import Allowed, admit
from engine.run import Plan, RunRequest
from engine.serving import served_target, vllm_questions
from engine.serving.engine_address import read
from engine.serving.engine_client import KEY, EngineClient
from engine.serving.served_target import SERVED, ServedTarget
from presets import family
from tests.engine.family import ran, tokens_of, trace_of
from tests.engine.small_engine import CONTEXT, cut_off, embedded_rows, give, gives, small_engine
from tests.grids import some

PROMPT = "Once upon a time there was a little dog"
HERE = family().parts["draft"]
NEW = 16


@pytest.fixture(scope="module")
def engine():
    with small_engine() as engine:
        yield engine


@pytest.fixture(autouse=True)
def right_again(engine):
    yield
    engine.wrong.clear()


def request(engine, **fields) -> RunRequest:
    models = ModelPaths(engine.target, {"draft": HERE})
    return RunRequest(**{"prompt": PROMPT, "models": models, "max_new_tokens": NEW, **fields})


def served(engine, **fields):
    return ran(request(engine, **fields))


@cache
def here(drafter: str = "none", count: int = NEW, **options):
    """Return the run of the same model here."""
    return trace_of(PROMPT, drafter=drafter, options=options, max_new_tokens=count)


@cache
def able() -> list[str]:
    """Return the drafters that use only the target's passes, and need at most a draft model."""
    return [
        key
        for key, cls in drafters().items()
        if SERVED.issuperset(cls.needs.values()) and cls.needs.keys() <= {"draft"}
        if Plan.of(RunRequest("a", family(), drafter=key)).rule.key == "greedy"
        if cls.loop == "speculative" and not cls.uses_target
    ]


FEW = ("none", "chain", "dyspec", "prompt_lookup", "auto")


@pytest.mark.parametrize("drafter", some(able(), FEW.__contains__))
def test_the_text_is_that_of_the_same_model_here(engine, drafter):
    trace = served(engine, drafter=drafter)
    assert tokens_of(trace) == tokens_of(here())
    assert trace.run["target"]["known"] == 8 and trace.run["verifier"]["up_to_rounding"]


def test_every_step_asks_once_and_accepts_what_it_would_here(engine, monkeypatch):
    """Though only one token of each row is known besides the drafted ones, also where a tree has several below a node."""
    monkeypatch.setattr(vllm_questions, "KNOWN", 1)
    engine.asked.clear()
    there = served(engine, drafter="dyspec", options={"budget": 8})
    own = here("dyspec", budget=8)
    assert len(engine.asked) == len(there.steps) == len(own.steps)
    assert any(len(asked["prompt"]) > 1 for asked in engine.asked), "a tree, path by path"
    for one, other in zip(there.steps, own.steps, strict=True):
        assert one["nodes"]["token"] == other["nodes"]["token"]
        assert one["nodes"]["status"] == other["nodes"]["status"]
        assert one["nodes"]["p"] == pytest.approx(other["nodes"]["p"], abs=1e-4)


def test_the_context_ends_where_the_engine_says(engine):
    trace = served(engine, prompt="1 2 3 4 5 6 7 8 9 10 " * 3, max_new_tokens=400)
    assert trace.summary["stop"] == "context"
    assert len(trace.run["prompt"]["tokens"]) + trace.summary["new_tokens"] == CONTEXT


def test_a_planted_error_of_the_engine_is_seen(engine):
    """The comparison above could fail: an engine that ranks another token first writes another text."""

    def second_best(handler, body):
        status, answer = engine.answer("/v1/completions", body)
        (last,) = answer["choices"][0]["logprobs"]["top_logprobs"]
        first, second = sorted(last, key=last.get)[-1:-3:-1]
        last[first], last[second] = last[second], last[first]
        give(handler, status, answer)

    engine.wrong["/v1/completions"] = second_best
    trace = served(engine, drafter="none", max_new_tokens=8)
    assert tokens_of(trace) != tokens_of(here(count=8))


def refused(engine, **fields) -> str:
    with pytest.raises(UserError) as told:
        served(engine, **fields)
    return str(told.value)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"temperature": 0.7}, "at temperature 0 or 1"), ({"temperature": 1.0, "top_p": 0.9}, "leave out top-k"),
        ({"verifier": "typical"}, "by these rules only: greedy"), ({"json_schema": "{}"}, "no JSON schema"),
        ({"temperature": 1.0, "verifier": "sampler_match"}, "only: rejection, block, traversal"), ({"drafter": "swift"}, "reads with the target itself"),
        ({"drafter": "medusa"}, "needs"),
        ({"models": ModelPaths("vllm://127.0.0.1:1/a", {})}, "needs its tokenizer here"),
        ({"models": ModelPaths("vllm://127.0.0.1:1/a", {"draft": HERE})}, "No engine answers at 127.0.0.1:1."),
        ({"models": ModelPaths("vllm://no.such.host.invalid:80/a", {"draft": HERE})}, "No engine answers"),
        ({"models": ModelPaths("vllm://127.0.0.1/a", {"draft": HERE})}, "vllm://HOST:PORT/NAME"),
        ({"models": ModelPaths("vllm://me:key@127.0.0.1:1/a", {"draft": HERE})}, "without a key"),
    ],
    ids=lambda fields: str(fields)[:40],
)  # fmt: skip
def test_what_cannot_be_had_is_one_sentence(engine, fields, told):
    said = refused(engine, **{"drafter": "prompt_lookup", **fields})
    assert told in said and "\n" not in said and "me:key" not in said


def test_another_name_and_another_vocabulary(engine):
    told = refused(engine, models=ModelPaths(engine.target + "x", {"draft": HERE}))
    assert "serves no model 'house/embeddedx'; it serves: house/embedded." in told
    engine.wrong["/tokenize"] = gives(200, {"tokens": [1, 2, 3]})
    assert "has another vocabulary" in refused(engine)


def elsewhere(handler, body):
    give(handler, 307, {}, Location="http://127.0.0.1:1/v1/completions")


def strange(tops=None, **change):
    """Return the answer of an engine with a changed first choice. tops: the log-probabilities of the next tokens."""
    told = {"index": 0, "prompt_logprobs": [None] * 99, "logprobs": None, **change}
    if tops is not None:
        told |= {"prompt_logprobs": [None] * 9, "logprobs": {"top_logprobs": [tops]}}
    return gives(200, {"choices": [told]})


WRONG = [
    (cut_off, "broke off its answer"),
    (lambda handler, body: handler.wfile.write(b"SSH-2.0\r\n"), "broke off its answer"),
    (lambda handler, body: None, "broke off its answer"),
    (gives(200, []), "otherwise than vLLM"),
    (elsewhere, "which is not followed"),
    (gives(401, {"error": "Unauthorized"}), f"give one in {KEY}"),
    (gives(500, {"error": {"message": "a\x1b[31m\nb"}}), "(500): a⟨1b⟩[31m b"),
    (gives(200, {"choices": []}), "otherwise than vLLM"),
    (strange(), "otherwise than vLLM"),
    (strange(index=5), "otherwise than vLLM"),
    (strange({"token_id:5": float("nan")}), "otherwise than vLLM"),
    (strange({"token_id:99999": -0.1}), "another vocabulary"),
]


@pytest.mark.parametrize(("wrong", "told"), WRONG, ids=range(12))
def test_an_answer_that_is_none_is_one_sentence(engine, wrong, told):
    engine.wrong["/v1/completions"] = wrong
    said = refused(engine, drafter="none")
    assert told in said and "\n" not in said


@pytest.mark.parametrize("drafter", ["none", "chain"])
def test_an_answer_that_breaks_off_is_asked_for_again(engine, drafter):
    """Once, and with the same seed, so that a drawn text is the same; the questions that count are those that were answered."""
    fields = {"drafter": drafter, "temperature": 1.0, "seed": 3, "max_new_tokens": 6}
    whole, broken = served(engine, **fields), []

    def at_first(handler, body):
        if body in broken:
            give(handler, *engine.answer("/v1/completions", body))
        else:
            broken.append(body)
            cut_off(handler, body)

    engine.wrong["/v1/completions"] = at_first
    trace = served(engine, **fields)
    assert tokens_of(trace) == tokens_of(whole) and len(broken) == trace.summary["target_calls"]


def test_fewer_log_probabilities_than_asked_for(engine, monkeypatch):
    monkeypatch.setattr(vllm_questions, "KNOWN", 21)
    assert "larger --max-logprobs" in refused(engine)


def test_a_slow_answer_and_a_large_one_are_given_up(engine):
    def drips(handler, body):
        handler.send_response(200)
        handler.end_headers()
        with pytest.raises(OSError):
            while True:
                handler.wfile.write(b" ")
                handler.wfile.flush()
                time.sleep(0.05)

    engine.wrong["/drips"] = drips
    client = EngineClient(read(engine.target), seconds=0.5)
    with pytest.raises(UserError, match="took more than 0.5 s"):
        client.ask("/drips")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        port = silent.getsockname()[1]
        with pytest.raises(UserError, match="took more than 0.5 s"):
            EngineClient(read(f"vllm://127.0.0.1:{port}/a"), seconds=0.5).ask("/v1/models")
    engine.wrong["/large"] = lambda handler, body: give(handler, 200, ["a" * 50_000])
    with pytest.raises(UserError, match="sends more than"):
        EngineClient(read(engine.target), most=10_000).ask("/large")


def test_the_key_is_sent_and_stands_in_no_trace(engine, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv(KEY, "kumquat")
    out, log = tmp_path / "run.ndjson", ["run", "--target", engine.target, "--draft", HERE]
    log += ["--drafter", "chain", "--prompt", PROMPT, "--max-new-tokens", "8", "--trace", str(out)]
    assert main(log) == 0 and "Bearer kumquat" in engine.keys
    told = capsys.readouterr()
    trace = out.read_text("utf-8")
    assert "kumquat" not in trace + told.out + told.err and str(engine.port) not in trace
    assert json.loads(trace.splitlines()[0])["target"]["name"] == "embedded"
    assert main([*log[:2], engine.target + "x", *log[3:]]) == 2
    assert "serves no model" in capsys.readouterr().err


@pytest.mark.parametrize(
    "wish", ["vllm://10.0.0.1:8000/a", "VLLM://localhost:80/a", " sglang://[::1]:80/a"]
)
def test_a_visitor_of_the_page_names_no_engine(wish):
    with pytest.raises(UserError, match="asks no engine at an address that a visitor names"):
        admit(wish, Allowed(("*", "/")))


def test_what_measures_time_asks_no_engine(engine, tmp_path, capsys):
    prompts = tmp_path / "prompts.txt"
    prompts.write_text("Once upon a time")
    models = ["--target", engine.target, "--draft", HERE]
    for command in (["tune", "--prompts", str(prompts)], ["bench", "--quick"]):
        assert main([*command, *models]) == 2
        assert "not one behind an engine" in capsys.readouterr().err


def test_sampling_is_refused_before_anything_is_asked(engine):
    engine.asked.clear()
    target = ServedTarget(engine.target, HERE)
    with pytest.raises(UserError):
        target.check(drafters()["none"], Sampling(temperature=0.5), None, False)
    assert not engine.asked


@pytest.mark.parametrize("drafter", ["chain", "dyspec"])
def test_sglang_is_asked_in_its_own_way(engine, drafter):
    """One question a step, which tells what vLLM's answer tells."""
    engine.asked.clear()
    models = ModelPaths(engine.sglang_target, {"draft": HERE})
    there = served(engine, models=models, drafter=drafter)
    assert len(engine.asked) == len(there.steps)
    assert tokens_of(there) == tokens_of(here())
    vllm = served(engine, drafter=drafter)
    for one, other in zip(there.steps, vllm.steps, strict=True):
        assert one["nodes"]["p"] == pytest.approx(other["nodes"]["p"], abs=1e-4)


def test_sglang_that_answers_otherwise(engine):
    models = ModelPaths(engine.sglang_target, {"draft": HERE})
    told = [{"meta_info": {"output_token_logprobs": [[0, 1]]}}]
    for answer in ({}, [], [{"meta_info": {}}], told):
        engine.wrong["/generate"] = lambda handler, body, answer=answer: give(handler, 200, answer)
        assert "otherwise than SGLang does" in refused(engine, models=models, drafter="none")


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
@pytest.mark.parametrize("drafter", ["none", "chain", "dyspec"])
def test_sampled_texts(engine, kind, drafter):
    """Every step asks once, and p is the target's own; the law is that of ``tests.verifiers.test_served_law``."""
    fields = {
        "models": ModelPaths(engine.target.replace("vllm", kind), {"draft": HERE}),
        "drafter": drafter,
        "options": {"budget": 6} if drafter == "dyspec" else {},
        "temperature": 1.0,
        "max_new_tokens": 8,
    }
    engine.asked.clear()
    trace = served(engine, seed=3, **fields)
    assert len(engine.asked) == len(trace.steps) == trace.summary["target_calls"]
    assert trace.run["target"]["clock"] == "remote" and trace.run["verifier"]["up_to_rounding"]
    laws = embedded_rows(trace.run["prompt"]["tokens"] + tokens_of(trace)).exp()
    for step in trace.steps:
        law, nodes = laws[step["position"] - 1], step["nodes"]
        for token, parent, p in zip(nodes["token"], nodes["parent"], nodes["p"], strict=True):
            if parent == -1:
                assert p == pytest.approx(float(law[token]), abs=1e-4)
    assert tokens_of(served(engine, seed=3, **fields)) == tokens_of(trace)


@pytest.mark.exhaustive
@pytest.mark.parametrize("drafter", able())
def test_every_drafter_can_be_sampled(engine, drafter):
    fields = {"drafter": drafter, "verifier": "rejection", "temperature": 1.0, "max_new_tokens": 6}
    if drafter == "sjd":  # it draws from the whole of what the target told before
        assert "tokens in one place" in refused(engine, **fields)
        return
    trace = served(engine, **fields)
    assert trace.summary["stop"] in ("length", "eos")


def test_a_draft_of_many_tokens_takes_several_questions(engine, monkeypatch):
    monkeypatch.setattr(vllm_questions, "MOST_NAMED", 12)
    engine.asked.clear()
    trace = served(engine, drafter="chain", temperature=1.0, max_new_tokens=8)
    assert trace.summary["target_calls"] == len(engine.asked) > len(trace.steps)
    assert max(len(asked.get("logprob_token_ids", ())) for asked in engine.asked) <= 12
    monkeypatch.setattr(vllm_questions, "MOST_NAMED", 4)
    told = refused(engine, drafter="chain", temperature=1.0)
    assert "in one place; vLLM is asked about 4" in told


def test_an_engine_that_draws_what_it_must_not_is_refused(engine):
    def first(handler, body):
        status, answer = engine.answer("/v1/completions", body)
        for choice in answer["choices"] if "logit_bias" in body else ():
            choice["logprobs"]["tokens"] = [f"token_id:{body['logprob_token_ids'][0]}"]
        give(handler, status, answer)

    engine.wrong["/v1/completions"] = first
    assert "told not to draw" in refused(engine, drafter="chain", temperature=1.0)


def test_an_engine_that_tells_p_after_the_ban_is_refused(engine):
    """vLLM with --logprobs-mode processed_logprobs; every text would lack what was drafted."""

    def processed(handler, body):
        status, answer = engine.answer("/v1/completions", body)
        for choice in answer["choices"]:
            (law,) = choice["logprobs"]["top_logprobs"]
            for token in body.get("logit_bias", ()):
                law[f"token_id:{token}"] -= 100
        give(handler, status, answer)

    engine.wrong["/v1/completions"] = processed
    assert "--logprobs-mode raw_logprobs" in refused(engine, drafter="chain", temperature=1.0)


def test_too_much_is_not_sent(engine, monkeypatch):
    monkeypatch.setattr(served_target, "MOST_TOKENS", 8)
    assert "tokens at once; at most 8 are sent" in refused(engine, drafter="none")
    monkeypatch.setattr(served_target, "MOST_TOKENS", 10_000)
    monkeypatch.setattr(served_target, "MOST_PROMPTS", 2)
    told = refused(engine, drafter="dyspec", options={"budget": 16})
    assert "it is asked to read 2 at once" in told


def test_an_interrupted_run_lets_the_engine_stop(engine):
    """The connection is closed at once, which the engine sees."""
    asked, closed = threading.Event(), threading.Event()

    def waits(handler, body):
        asked.set()
        handler.connection.settimeout(20)
        assert handler.connection.recv(1) == b""
        closed.set()

    engine.wrong["/v1/completions"] = waits

    def interrupt():
        asked.wait(20)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            served(engine, drafter="none")
    finally:
        signal.signal(signal.SIGINT, before)
    assert closed.wait(20)
