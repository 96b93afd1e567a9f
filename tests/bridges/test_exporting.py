"""A recommended setting in each engine's words. The expected ones are written by hand from the engines' own documentation."""

import json
import shlex
from dataclasses import replace

import pytest

from engine.__main__ import main
from engine.bridges.export_words import CHAINS
from engine.bridges.exportable import exportable
from engine.bridges.exporting import CAUTION, ENGINES, export
from engine.bridges.recommended import USUAL_DEPTH, recommended
from engine.errors import UserError
from engine.methods import drafters
from presets import family
from tests.bridges.settings import POSITIONS, measured, record, setting

EAGLE_CHAIN = setting("eagle", options={"top_k": 1}, checkpoint="DIR", eagle3=True)
EAGLE_TREE = setting("eagle", 12, options={"top_k": 4, "depth": 5}, checkpoint="DIR", eagle3=False)
LOOKUP = setting("prompt_lookup", 6, options={"max_ngram": 4, "min_ngram": 2})
DRAFT = {"method": "draft_model", "model": "small", "num_speculative_tokens": 3}
DRAWN, GREEDY = {"draft_sample_method": "probabilistic"}, {"draft_sample_method": "greedy"}
VLLM = {
    "a draft model, drawn": (setting(temperature=0.8, verifier="rejection"), DRAFT | DRAWN),
    "a draft model, off above 9 texts": (
        setting(off_above=9),
        DRAFT | GREEDY | {"num_speculative_tokens_per_batch_size": [[1, 9, 3], [10, 10, 0]]},
    ),
    "judged as a block": (
        setting(verifier="block", temperature=1.0),
        DRAFT | DRAWN | {"rejection_sample_method": "block"},
    ),
    "EAGLE-3": (EAGLE_CHAIN, {"method": "eagle3", "model": "DIR", "num_speculative_tokens": 3}),
    "DFlash": (
        setting("dflash", 7, checkpoint="DIR"),
        {"method": "dflash", "model": "DIR", "num_speculative_tokens": 7},
    ),
    "PARD": (
        setting("pard", 7, checkpoint="DIR"),
        DRAFT | GREEDY | {"model": "DIR", "num_speculative_tokens": 7, "parallel_drafting": True},
    ),
    "MTP": (setting("mtp", 2), {"method": "mtp", "num_speculative_tokens": 2}),
    "prompt lookup": (
        LOOKUP,
        {"method": "ngram", "num_speculative_tokens": 6}
        | {"prompt_lookup_max": 4, "prompt_lookup_min": 2},
    ),
    "suffix": (
        setting("suffix", 16, options={"factor": 1.5, "least_chance": 0.2, "earlier_texts": False}),
        {"method": "suffix", "num_speculative_tokens": 16, "suffix_decoding_max_tree_depth": 24}
        | {"suffix_decoding_max_cached_requests": 0, "suffix_decoding_max_spec_factor": 1.5}
        | {"suffix_decoding_min_token_prob": 0.2},
    ),
}

SGLANG = {
    "a draft model": (
        setting(),
        (
            "--speculative-algorithm STANDALONE --speculative-draft-model-path small --speculative-num-steps 3 "
            "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4"
        ),
    ),
    "EAGLE-3, drawn": (
        replace(EAGLE_CHAIN, temperature=1.0, verifier="rejection"),
        (
            "--speculative-algorithm EAGLE3 --speculative-draft-model-path DIR --speculative-num-steps 3 "
            "--speculative-eagle-topk 1 --speculative-num-draft-tokens 4 --speculative-use-rejection-sampling"
        ),
    ),
    "a tree of EAGLE": (
        EAGLE_TREE,
        (
            "--speculative-algorithm EAGLE --speculative-draft-model-path DIR --speculative-num-steps 5 "
            "--speculative-eagle-topk 4 --speculative-num-draft-tokens 13"
        ),
    ),
    "MTP, judged as a block": (
        setting("mtp", 2, verifier="block"),
        (
            "--speculative-algorithm NEXTN --speculative-num-steps 2 --speculative-eagle-topk 1 "
            "--speculative-num-draft-tokens 3 --speculative-use-block-verification"
        ),
    ),
    "DFlash": (
        setting("dflash", 7, checkpoint="DIR"),
        "--speculative-algorithm DFLASH --speculative-draft-model-path DIR --speculative-dflash-block-size 8",
    ),
    "prompt lookup": (LOOKUP, "--speculative-algorithm NGRAM --speculative-num-draft-tokens 7"),
}
LLAMA = {
    "a draft model": (
        setting(checkpoint="small.gguf"),
        "--spec-type draft-simple -md small.gguf --spec-draft-n-max 3 --spec-draft-sampling greedy",
    ),
    "EAGLE-3": (EAGLE_CHAIN, "--spec-type draft-eagle3 -md DIR --spec-draft-n-max 3"),
    "MTP": (setting("mtp", 2), "--spec-type draft-mtp --spec-draft-n-max 2"),
    "DFlash": (
        setting("dflash", 7, checkpoint="DIR"),
        "--spec-type draft-dflash -md DIR --spec-draft-n-max 7",
    ),
    "prompt lookup": (
        LOOKUP,
        "--spec-type ngram-simple --spec-ngram-simple-size-n 4 --spec-ngram-simple-size-m 6",
    ),
}
WORDS = {"vllm": VLLM, "sglang": SGLANG, "llama.cpp": LLAMA}


@pytest.mark.parametrize("engine, case", [(e, case) for e in WORDS for case in WORDS[e]])
def test_a_setting_in_an_engines_words(engine, case):
    given, expected = WORDS[engine][case]
    text = export(given, engine).text
    assert (json.loads(text) if engine == "vllm" else text) == expected


NOT_EXPRESSIBLE = [
    ("vllm", EAGLE_TREE, "tree"),
    ("llama.cpp", EAGLE_TREE, "tree"),
    *((engine, setting("mtp", 12), "tree") for engine in ("vllm", "llama.cpp", "transformers")),
    ("llama.cpp", setting("eagle", 3, options={"top_k": 1}, eagle3=False), "EAGLE-3 only"),
    ("llama.cpp", setting("suffix", 16), "suffix"),
    ("transformers", EAGLE_CHAIN, "eagle"),
    *(
        (engine, setting(drafter, 8), drafter)
        for engine in ENGINES
        for drafter in ("dyspec", "auto", "swift")
    ),
]


@pytest.mark.parametrize(("engine", "given", "word"), NOT_EXPRESSIBLE)
def test_what_cannot_be_expressed_is_said_and_not_replaced(engine, given, word):
    found = export(given, engine)
    assert not found.text and not found.synthetic
    assert word in " ".join(found.notes) and "cannot be expressed" in " ".join(found.notes)


def test_the_measured_acceptance_goes_to_engines_that_take_it():
    """Each rate is the share of drafts of which the position and all before it are kept, as both engines define it."""
    for given in (setting(), setting(verifier="block", off_above=4)):
        synthetic = json.loads(export(given, "vllm").synthetic)
        assert synthetic["synthetic_acceptance_rates"] == [0.8, 0.6, 0.25]
        assert synthetic["rejection_sample_method"] == "synthetic"
    assert export(setting(), "llama.cpp").synthetic.endswith(" --spec-synth-rates 0.8,0.6,0.25")
    for less in (POSITIONS[:2], ({"position": 1, "accepted": 3},) * 3, ()):
        assert not export(setting(positions=less), "vllm").synthetic


@pytest.mark.parametrize("engine", ENGINES)
def test_the_caution_and_the_table_are_always_there(engine):
    notes = export(setting(off_above=9), engine).notes
    assert notes[-1] == CAUTION
    listed = "1: 0.800, 2: 0.750, 3: 0.500" in notes[-2]
    assert listed != bool(export(setting(off_above=9), engine).synthetic), "one list, not two"
    assert engine == "transformers" or any("9 texts" in note for note in notes)


def test_engines_that_never_stop_early_get_the_mean_length():
    early = setting(size=16, drafted=2.4, off_above=4)
    config = json.loads(export(early, "vllm").text)
    assert config["num_speculative_tokens"] == 2
    assert config["num_speculative_tokens_per_batch_size"][0] == [1, 4, 2]
    assert json.loads(export(early, "vllm").synthetic)["synthetic_acceptance_rates"] == [0.8, 0.6]
    assert "--speculative-num-steps 2 " in export(early, "sglang").text
    assert "--speculative-num-draft-tokens 3" in export(early, "sglang").text
    assert "--spec-draft-n-max 16" in export(early, "llama.cpp").text, "it stops early itself"
    for engine in ("vllm", "sglang"):
        name = ENGINES[engine][0]
        assert export(early, engine).differs == (
            f"The chain of up to 16 tokens that was measured here has 2 tokens for {name}: {name} never ends a draft "
            "early, so it gets the mean length that was drafted here (2.4)."
        )
        assert "try a shorter chain" in export(setting(size=16), engine).differs
        assert not export(setting(size=2, drafted=1.8), engine).differs, "the answer has 2, too"
    assert not export(early, "llama.cpp").differs
    assert json.loads(export(setting(size=16), "vllm").text)["num_speculative_tokens"] == 16


def test_the_models_and_the_speed_of_the_very_setting_are_told():
    lines = record(size=16, ratio=1.77)
    lines[0]["target"]["parameters"], lines[0]["draft"]["parameters"] = 14.2e6, 1e6
    for line in lines:
        if line["kind"] == "acceptance":
            line |= {"size": 16, "options": {}, "steps": 100, "drafted": 400}
    lines[-1:-1] = [
        measured("chain", 4, 1.5, prompts=6, options={"length": 4}),
        measured("chain", 16, 1.77, checked=117.0),
        measured("chain", 4, 3.0, texts=2),
        measured("suffix", 4, 3.0),
    ]
    found = exportable(lines, "r", "vllm")
    told = export(found, "vllm").measured
    assert "the models measured here, big (14.2 M) with small (1.0 M), and" in told
    assert told.endswith(
        " `chain`, 4 tokens: 1.50 times plain decoding for one text, predicted after 6 prompts."
    )
    said = export(found, "transformers").measured
    assert said.endswith(
        " `chain`, 16 tokens: 1.77 times plain decoding for one text, checked by running it."
    )
    only = export(replace(found, tried={16: found.tried[16]}), "vllm").measured
    assert only.endswith(
        "Drafts of up to 16 tokens: 1.77 times plain decoding for one text, checked by running it. "
        "Always 4 tokens were not measured here."
    )
    unknown = export(replace(found, tried={}), "vllm").measured
    assert unknown.endswith("The speed of `chain`, 4 tokens, was not measured here.")


def test_what_is_put_in_the_place_of_names_is_told_once():
    first = export(setting(), "vllm").notes[0]
    assert "in the place of TARGET, and that of your drafter in the place of small." in first
    assert export(LOOKUP, "vllm").notes[0].endswith("in the place of TARGET.")


def test_sglang_switches_off_by_the_batch_where_it_can():
    told = " ".join(export(setting("mtp", 2, off_above=9), "sglang").notes)
    assert '{"1": {"candidate_steps": [2]}, "10": {"candidate_steps": [0]}}' in told
    assert "adaptive" not in " ".join(export(setting(off_above=9), "sglang").notes)


def test_a_record_is_read():
    found = recommended(record(), "r")
    assert (found.target, found.draft, found.off_above, found.temperature) == (
        "big",
        "small",
        9,
        0.8,
    )
    assert found.positions == POSITIONS, (
        "kinds of prompts are added up, and the later line of a kind counts"
    )
    assert found.drafted is None, "these lines do not say it"
    steps = {"story": (100, 250), "code": (300, 450)}
    for line in (lines := record()):
        if line["kind"] == "acceptance" and line["size"] == 3:
            line["steps"], line["drafted"] = steps[line["prompt_kind"]]
    assert recommended(lines, "r").drafted == 700 / 400
    lines[2]["drafted"] = float("nan")
    with pytest.raises(UserError, match="broken"):
        recommended(lines, "r")
    lines = [*record(drafter="eagle"), *record()]
    assert recommended(lines, "r").drafter == "chain", "the last answer counts"


OTHERS = [
    measured("chain", 3, 9.0),  # a later line of the same setting counts
    measured("dyspec", 7, 1.6),
    measured("chain", 3, 1.5),
    *(measured("chain", 3, ratio, texts=n) for n, ratio in ((2, 1.2), (4, 1.1), (8, 0.9), (16, 1))),
    measured("chain", 7, 1.4),
    measured("prompt_lookup", 4, 2.5, prompts=6),
    measured("none", 0, 3.0),
]


def test_what_cannot_be_expressed_gives_way_to_the_best_that_was_measured():
    lines = [*OTHERS, *record(drafter="dyspec", size=7, ratio=1.6)]
    found = exportable(lines, "r", "vllm")
    assert (found.drafter, found.size, found.off_above) == ("chain", 3, 4)
    assert found.positions == POSITIONS
    exported = export(found, "vllm")
    assert json.loads(exported.text)["num_speculative_tokens"] == 3
    assert exported.differs.startswith(
        "vLLM has no drafter like `dyspec`, so it cannot be told `dyspec`, 7 nodes. The best setting measured here that it "
        "can be told is `chain`, 3 tokens: 1.5 times plain decoding for one text (`dyspec` 1.6). Settings that were tried on "
        "fewer prompts are left out, even where they look faster. "
    )
    slower = replace(found, instead_of=replace(found.instead_of, ratio=1.4))
    assert "(`dyspec` 1.4). The higher speed is predicted; " in export(slower, "vllm").differs
    tree = replace(found, instead_of=setting("mtp", 12))
    assert export(tree, "vllm").differs.startswith("vLLM has no trees, so it cannot be told `mtp`,")
    alone = [measured("prompt_lookup", 4, 1.1, prompts=6), *record(drafter="dyspec", size=7)]
    found = exportable(alone, "r", "vllm")
    assert (found.drafter, found.off_above) == ("prompt_lookup", None)
    assert "decoding for one text. " in export(found, "vllm").differs
    plain = [*OTHERS, *record()]
    assert exportable(plain, "r", "vllm") == recommended(plain, "r"), "the answer goes first"
    with pytest.raises(UserError, match="engine"):
        exportable(plain, "r", "tgi")


HOSTILE = (
    {"ratio": "2"},
    {"ratio": float("nan")},
    {"ratio": 1.01},
    {"size": "3"},
    {"size": 10**9},
    {"drafter": ["chain"]},
    {"drafter": None},
    {"options": 7},
    {"options": {"max_ngram": "x"}},
    {"verifier": None, "texts": 2},
)


@pytest.mark.parametrize("wrong", HOSTILE)
def test_without_another_setting_the_refusal_stays(wrong):
    lines = [measured("chain", 3, 1.5) | wrong, *record(drafter="dyspec", size=7)]
    found = export(exportable(lines, "r", "vllm"), "vllm")
    assert not found.text and found.notes == (
        "vLLM has no drafter like `dyspec`, so this setting cannot be expressed for it.",
    )


def test_a_broken_number_of_texts_is_one_sentence():
    lines = [measured("chain", 3, 1.5), measured("chain", 3, 1.5, texts="two")]
    with pytest.raises(UserError, match="^A setting in r is broken.$"):
        exportable([*lines, *record(drafter="dyspec", size=7)], "r", "vllm")


def test_sizes_that_are_told_in_tokens_are_those_of_chains():
    assert {drafters()[key].shape for key in CHAINS} == {"chain"}


def test_the_usual_depth_is_the_drafter_s():
    (depth,) = (option for option in drafters()["eagle"].options if option.name == "depth")
    assert depth.default == USUAL_DEPTH


BROKEN = {
    "no answer": record()[:-1],
    "nothing": [],
    "plain decoding": record(drafter="none", size=0),
    "no drafter": record(drafter=None),
    "a drafter of numbers": record(drafter=3),
    "no size": record(size=0),
    "a negative size": record(size=-3),
    "a size in words": record(size="three"),
    "a giant size": record(size=10**9),
    "true for a size": record(size=True),
    "options in a list": record(options=[3]),
    "code for an option": record(options={"max_ngram": "1); import os"}),
    "words for a factor": record(drafter="suffix", options={"factor": "much"}),
    "no number for a chance": record(drafter="suffix", options={"least_chance": float("nan")}),
    "a rule less": [*record()[:-1], {k: v for k, v in record()[-1].items() if k != "verifier"}],
    "off above nothing": record(off_above=0),
    "off above words": record(off_above="nine"),
    "a target of words": [{"kind": "tuning", "target": "big"}, *record()[1:]],
}


@pytest.mark.parametrize("way", BROKEN)
def test_a_broken_record_is_one_sentence(way):
    with pytest.raises(UserError) as told:
        recommended(BROKEN[way], "r")
    sentence = str(told.value)
    assert sentence.endswith(".") and "\n" not in sentence


def test_strangers_words_stay_words():
    evil = setting(draft='a\'; rm -rf "$(pwd)"\n', temperature=0.0)
    for engine in ("sglang", "llama.cpp"):
        assert any(evil.draft in word for word in shlex.split(export(evil, engine).text))
    first = export(evil, "transformers").text.splitlines()[0]
    assert first == f"draft = AutoModelForCausalLM.from_pretrained({evil.draft!r})"


def test_the_command(tmp_path, capsys):
    path = tmp_path / "record.ndjson"
    path.write_text("".join(json.dumps(line) + "\n" for line in record()))
    assert main(["export", str(path), "--to", "vllm"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["num_speculative_tokens"] == 3
    assert shown.err.startswith("The numbers hold for the models measured here, big with small,")
    assert "vLLM never ends a draft early" in shown.err
    assert "does not carry over" in shown.err and "synthetic_acceptance_rates" in shown.err
    draft, eagle = family().parts["draft"], family().parts["eagle"]
    assert main(["export", str(path), "--to", "vllm", "--checkpoint", draft]) == 0
    assert json.loads(capsys.readouterr().out)["model"] == draft
    assert main(["export", str(path), "--to", "vllm", "--checkpoint", eagle]) == 2
    assert "is an EAGLE-1 or EAGLE-2 drafter" in capsys.readouterr().err
    path.write_text(
        json.dumps({"kind": "answer", "drafter": "none", "size": 0, "verifier": "greedy"})
    )
    assert main(["export", str(path), "--to", "vllm"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert main(["export", str(path), "--to", "tgi"]) == 2
