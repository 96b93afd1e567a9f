"""Makes the requests to SGLang that ask for the target's rows of a draft: ``/generate`` with token ids, according to
SGLang's documentation.

A row is what the target says about the token after one position. One request gives all rows: it has a prompt for each
path of the draft. The engine reports log-probabilities only from the end of the text on (``logprob_start_len``), so it
can use its cache for the text. At temperature 1 it also reports p of all tokens that the draft has or could have drawn
(``token_ids_logprob``). Then each node with children is one more prompt, after which the engine draws a token among
all others (``logit_bias``).
"""

from collections.abc import Iterator, Sequence

from engine.core.tree import ROOT
from engine.serving.served_rows import KNOWN, Question, Reading, Row

PATH = "/generate"
BAN = -100.0
PLAIN = {
    "max_new_tokens": 1,
    "ignore_eos": True,
    # without these, the model's generation config decides
    "top_p": 1.0,
    "top_k": -1,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def questions(name: str, reading: Reading) -> Iterator[Question]:
    """Yields the one request whose answer gives all rows of a draft. name: unused, because an SGLang server has only
    one model."""
    leaves, seed = reading.leaves, reading.seed
    inner = [place for place in range(ROOT, len(reading.tree)) if place not in leaves]
    drawn = [] if seed is None else inner
    possible = {place: reading.possible(place) for place in drawn}
    prompts = [reading.prompt(place) for place in (*leaves, *drawn)]
    plain = PLAIN | (
        {"temperature": 0.0} if seed is None else {"temperature": 1.0, "sampling_seed": seed}
    )
    body = {
        "input_ids": prompts,
        "sampling_params": [plain] * len(leaves)
        + [plain | {"logit_bias": {str(t): BAN for t in sorted(possible[p])}} for p in drawn],
        "return_logprob": True,
        "logprob_start_len": [len(reading.text) - 1] * len(leaves) + [-1] * len(drawn),
        "top_logprobs_num": KNOWN,
    }
    named = sorted(frozenset().union(*possible.values()))
    if named:
        body["token_ids_logprob"] = named

    def rows(answer: Sequence[dict]) -> dict[int, Row]:
        metas = [entry["meta_info"] for entry in answer]
        law_at: dict[int, dict[int, float]] = {}
        own: dict[int, int] = {}
        for place, meta in zip((*leaves, *drawn), metas, strict=True):
            ((_, own[place], *_),) = meta["output_token_logprobs"]
            if place in possible:
                continue
            path = reading.path(place)
            tokens = [reading.tree.tokens[node] for node in path]
            for above, law in zip([ROOT, *path], _laws(meta, tokens, bool(named)), strict=True):
                law_at[above] = law | law_at.get(above, {})
        if seed is None:
            return {place: Row(law) for place, law in law_at.items()}
        banned = {place: possible.get(place, frozenset()) for place in law_at}
        if any(not banned[place] <= law_at[place].keys() for place in law_at):
            raise ValueError
        return {place: Row(law, own[place], banned[place]) for place, law in law_at.items()}

    yield Question(PATH, body, prompts, rows)


def _laws(meta: dict, tokens: Sequence[int], named: bool) -> list[dict[int, float]]:
    """A list of laws, each token -> log-probability: the law after the text, then the law after each node of a path.
    meta: the engine's answer. tokens: the tokens of the path. named: whether the request named tokens."""
    kinds = ["top_logprobs", *(["token_ids_logprobs"] if named else [])]
    # the first token has no law before it; ids are the path's: SGLang gives a vocabulary's last token another id
    own = [
        [(p, token)]
        for (p, *_), token in zip(meta["input_token_logprobs"][1:], tokens, strict=True)
    ]
    read = [meta[f"input_{kind}"][1:] for kind in kinds] + [own]
    laws = [_law(entries) for entries in zip(*read, strict=True)]
    last = [meta[f"output_{kind}"][0] for kind in kinds]
    return [*laws, _law((*last, meta["output_token_logprobs"]))]


def _law(entries: Sequence[Sequence]) -> dict[int, float]:
    """A law, token -> log-probability. entries: lists of (log-probability, token), perhaps with the token's text."""
    return {int(token): float(p) for row in entries for p, token, *_ in row}
