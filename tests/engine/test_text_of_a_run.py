"""The text of a run, whatever the tokenizer: in the trace, in its nodes, on standard output, up to a stop string."""

import re
from itertools import islice

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig

from engine.__main__ import main
from engine.parts.loading import ModelPaths
from engine.run import RunRequest, open_run
from engine.trace import read_trace
from tests.engine.family import ran, tokens_of
from tests.engine.tiny_tokenizers import byte_level, decoded, llama, word_piece
from tests.pairs import SIZES

COUNT = 48
TOKENIZERS = {maker.__name__: maker for maker in (byte_level, llama, word_piece)}
ESCAPES = re.compile("⟨[0-9a-f]{2}⟩")
SEEDS = range(2)


@pytest.fixture(scope="module", params=TOKENIZERS)
def folder(request, tmp_path_factory):
    """A random model, which writes every token now and then: parts of characters, stray bytes, words."""
    where = tmp_path_factory.mktemp(request.param)
    tokenizer = TOKENIZERS[request.param]()
    torch.manual_seed(3)
    config = LlamaConfig(vocab_size=len(tokenizer), eos_token_id=None, **SIZES)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    model.save_pretrained(where)
    tokenizer.save_pretrained(where)
    return str(where)


@pytest.fixture(scope="module")
def tokenizer(folder):
    return AutoTokenizer.from_pretrained(folder)


def spoils(tokenizer) -> bool:
    """Return whether a stray byte makes decoding lose whole characters beside it. Random texts are full of stray
    bytes."""
    return "<0xE2>" in tokenizer.get_vocab()


def request_of(folder, **fields):
    paths = ModelPaths(folder, {"draft": folder})
    usual = {"prompt": "the", "temperature": 1.5, "max_new_tokens": COUNT}
    return RunRequest(models=paths, **usual | fields)


def trace_of(folder, **fields):
    return ran(request_of(folder, **fields))


@pytest.fixture(
    scope="module", params=[(key, seed) for key in ("chain", "dyspec") for seed in SEEDS], ids=str
)
def trace(folder, request):
    key, seed = request.param
    return trace_of(folder, drafter=key, seed=seed)


def pieces_of(trace) -> str:
    return "".join(piece for step in trace.steps for piece in step["output"]["pieces"])


def test_the_pieces_joined_are_the_text_and_the_text_is_the_decoding(trace, tokenizer):
    assert pieces_of(trace) == trace.summary["text"]
    prompt = trace.run["prompt"]["tokens"]
    written = tokens_of(trace)
    if spoils(tokenizer):
        return
    whole = decoded(tokenizer, prompt) + trace.summary["text"]
    assert decoded(tokenizer, prompt + written) == whole
    assert "".join(trace.run["prompt"]["pieces"]) == decoded(tokenizer, prompt)


def test_a_node_shows_what_it_adds_to_the_path_above_it(trace, tokenizer):
    if spoils(tokenizer):
        return
    text, pieces = list(trace.run["prompt"]["tokens"]), 0
    for step in trace.steps:
        nodes, paths = step["nodes"], []
        columns = (nodes[name] for name in ("token", "parent", "piece"))
        for token, parent, face in zip(*columns, strict=True):
            above = text if parent < 0 else paths[parent]
            paths.append([*above, token])
            before, after = (decoded(tokenizer, tokens) for tokens in (above, paths[-1]))
            if not before.endswith("\ufffd") and not after.endswith("\ufffd"):
                assert after == before + face
                pieces += 1
            assert after.endswith("\ufffd") or not ESCAPES.search(face)
        for place in step["distributions"]:
            parents = enumerate(nodes["parent"])
            below = {nodes["token"][i]: i for i, one in parents if one == place["node"]}
            for token, piece, _ in place["p"]:
                assert token not in below or piece == nodes["piece"][below[token]]
        text += step["output"]["tokens"]
    assert pieces


def test_a_cancelled_run_has_the_text_of_its_pieces(folder):
    run = open_run(request_of(folder, drafter="chain", temperature=1.5))
    lines = [run.header(), *islice(run.steps(), 2)]
    run.cancel()
    trace = read_trace("".join([*lines, run.summary()]))
    assert trace.summary["stop"] == "cancelled"
    assert pieces_of(trace) == trace.summary["text"]


def test_standard_output_is_the_text_whatever_drafts(folder, tmp_path, capsys):
    texts = set()
    for drafter, option in (("none", ()), ("prompt_lookup", ("--option", "length=7"))):
        path = tmp_path / f"{drafter}.ndjson"
        command = ["run", "--target", folder, "--prompt", "the fox the fox", "--drafter", drafter]
        for more in ([], ["--trace", str(path)]):
            assert main([*command, *option, *more, "--max-new-tokens", "40"]) == 0
            texts.add(capsys.readouterr().out)
        texts.add(read_trace(path).summary["text"])
    assert len(texts) == 1 and texts.pop()


def test_a_stop_string_with_a_space_ends_the_text_where_generate_ends_it(folder, tokenizer):
    plain = trace_of(folder, drafter="none", temperature=0.0)
    written = tokens_of(plain)
    pieces = [piece for step in plain.steps for piece in step["output"]["pieces"]]
    found = [piece for piece in pieces if "\ufffd" not in piece and piece]
    stop = found[0] if found[0].startswith(" ") else "".join(found[:2])
    reference = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
    prompt = plain.run["prompt"]["tokens"]
    out = reference.generate(
        torch.tensor([prompt]), do_sample=False, max_new_tokens=COUNT, pad_token_id=0,
        stop_strings=[stop], tokenizer=tokenizer,
    )  # fmt: skip
    trace = trace_of(folder, drafter="chain", temperature=0.0, stop=[stop])
    stopped = tokens_of(trace)
    assert stopped == out[0, len(prompt) :].tolist() == written[: len(stopped)]
