"""Makes the requests to vLLM that ask for the target's rows of a draft: ``/v1/completions`` with token ids.

A row is what the target says about the token after one position. At temperature 0 one request gives all rows
(``prompt_logprobs``): it has a prompt for each path of the draft.

At temperature 1 each node of the draft is a prompt of its own, after which vLLM draws one token. The request names all
tokens that the draft has or could have drawn. vLLM reports p of each of these tokens (``logprob_token_ids``), and
draws among all other tokens (``logit_bias``), so no second request is needed after a refusal. If vLLM's prefix cache
is on, the common beginning of the prompts is not computed again. One request may name at most 128 tokens, so a draft
that could have drawn more needs several requests.
"""

from collections.abc import Iterator, Sequence

from engine.core.tree import ROOT
from engine.errors import UserError
from engine.serving.served_rows import KNOWN, Question, Reading, Row

PATH = "/v1/completions"
MOST_NAMED = 128
"""The most tokens that one request may name in order to learn their p."""
BAN, BANNED = -100.0, -80.0
"""BAN is added to the logits of tokens that must not be drawn. A reported log-probability below BANNED shows that vLLM
computed it after this addition."""
PLAIN = {
    "max_tokens": 1,
    "ignore_eos": True,
    "return_tokens_as_token_ids": True,
    # without these, the model's generation config decides
    "top_p": 1.0,
    "top_k": 0,
    "min_p": 0.0,
    "repetition_penalty": 1.0,
    "presence_penalty": 0.0,
    "frequency_penalty": 0.0,
}


def questions(name: str, reading: Reading) -> Iterator[Question]:
    """Yields the requests whose answers together give all rows of a draft. name: the model's name. Raises UserError if
    a draft could have drawn too many tokens at one node."""
    if reading.seed is None:
        yield _likeliest(name, reading)
        return
    for places, named in _groups(reading):
        yield _drawn(name, reading, places, named)


def _likeliest(name: str, reading: Reading) -> Question:
    leaves = reading.leaves
    prompts = [reading.prompt(leaf) for leaf in leaves]
    body = {"model": name, "prompt": prompts, "temperature": 0.0} | PLAIN
    body |= {"prompt_logprobs": KNOWN, "logprobs": KNOWN}

    def rows(answer: dict) -> dict[int, Row]:
        law_at: dict[int, dict[int, float]] = {}
        for choice in _choices(answer, len(prompts)):
            path = reading.path(leaves[choice["index"]])
            begin = len(reading.text)
            read = choice["prompt_logprobs"][begin : begin + len(path)]
            laws = [{int(token): float(e["logprob"]) for token, e in row.items()} for row in read]
            for place, law in zip([ROOT, *path], [*laws, _law(choice)], strict=True):
                # paths that part at a place give p of different next tokens there
                law_at[place] = law | law_at.get(place, {})
        return {place: Row(law) for place, law in law_at.items()}

    return Question(PATH, body, prompts, rows)


def _drawn(name: str, reading: Reading, places: Sequence[int], named: frozenset[int]) -> Question:
    """The request for these nodes at temperature 1. places: the nodes, or ROOT. named: the tokens whose p is reported
    and which the engine must not draw."""
    prompts = [reading.prompt(place) for place in places]
    body = {"model": name, "prompt": prompts, "temperature": 1.0, "seed": reading.seed} | PLAIN
    body["logprobs"] = len(named) or KNOWN
    if named:
        body["logprob_token_ids"] = sorted(named)
        body["logit_bias"] = {str(token): BAN for token in sorted(named)}

    def rows(answer: dict) -> dict[int, Row]:
        row_at = {}
        for choice in _choices(answer, len(prompts)):
            (token,) = choice["logprobs"]["tokens"]
            row = Row(_law(choice), _id(token), named)
            if not named <= row.told.keys():
                raise ValueError
            row_at[places[choice["index"]]] = row
        if named and all(row.told[token] < BANNED for row in row_at.values() for token in named):
            raise UserError(
                "This vLLM tells p after the ban on tokens; start it with --logprobs-mode raw_logprobs."
            )
        return row_at

    return Question(PATH, body, prompts, rows)


def _groups(reading: Reading) -> Iterator[tuple[list[int], frozenset[int]]]:
    """Yields groups of nodes that fit into one request, each with the set of tokens that the request must name."""
    places: list[int] = []
    named: frozenset[int] = frozenset()
    for place in range(ROOT, len(reading.tree)):
        possible = reading.possible(place)
        if len(possible) > MOST_NAMED:
            raise UserError(
                f"The draft could have drawn {len(possible)} tokens in one place; vLLM is asked about {MOST_NAMED}."
            )
        if len(named | possible) > MOST_NAMED:
            yield places, named
            places, named = [], frozenset()
        places, named = [*places, place], named | possible
    yield places, named


def _choices(answer: dict, count: int) -> list[dict]:
    choices = answer["choices"]
    if sorted(choice["index"] for choice in choices) != list(range(count)):
        raise ValueError
    return choices


def _law(choice: dict) -> dict[int, float]:
    """The law of the token after a prompt: token -> log-probability."""
    (last,) = choice["logprobs"]["top_logprobs"]
    return {_id(token): float(p) for token, p in last.items()}


def _id(token: str) -> int:
    return int(token.removeprefix("token_id:"))
