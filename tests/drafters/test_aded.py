"""The tri-gram matrix, the search through it, and the bound on its memory."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.core.chance import DraftChance
from engine.core.drafter import Kept, Start
from engine.core.memory import Memory
from engine.core.sampling import Sampling
from engine.core.tree import DraftTree
from engine.methods.aded.draft_search import DraftSearch
from engine.methods.aded.drafter import AdaptiveDraftDrafter
from engine.methods.aded.trigram_matrix import MOST_BYTES, TrigramMatrix
from engine.parts.loading import load_models
from presets import family, prompts
from tests.drafters.writing import built, roots, steps_of, text_of
from tests.verifiers.tiny import shared_models

KEY = "aded"

# ---- The matrix ---------------------------------------------------------------------------------


def logits_of(*rows):
    """Return logits [R, 8] whose softmax has these probabilities by token; other tokens have almost none."""
    logits = torch.full((len(rows), 8), -20.0)
    for row, law in enumerate(rows):
        for token, chance in law.items():
            logits[row, token] = torch.tensor(chance).log()
    return logits


def test_a_new_row_is_what_the_target_said_and_a_later_pass_moves_it_by_its_share():
    matrix = TrigramMatrix(8, 3)
    matrix.write([(1, 2)], logits_of({4: 0.6, 5: 0.4}), 0.25)
    first = {token: chance for token, chance in matrix.row((1, 2)) if chance > 1e-4}
    assert first == {4: pytest.approx(0.6), 5: pytest.approx(0.4)}
    matrix.write([(1, 2)], logits_of({4: 0.2, 6: 0.8}), 0.25)
    found = dict(matrix.row((1, 2)))
    assert found == {4: pytest.approx(0.5), 5: pytest.approx(0.3), 6: pytest.approx(0.2)}


def test_only_the_likeliest_are_kept_and_pairs_are_told_apart():
    matrix = TrigramMatrix(8, 2)
    matrix.write([(1, 2), (2, 1)], logits_of({3: 0.5, 4: 0.3, 5: 0.2}, {6: 1.0}), 0.5)
    assert [token for token, _ in matrix.row((1, 2))] == [3, 4]
    assert matrix.row((2, 1))[0][0] == 6 and matrix.row((1, 1)) == []


def test_a_row_of_nan_is_left_out():
    matrix = TrigramMatrix(8, 2)
    logits = logits_of({3: 1.0}, {4: 1.0})
    logits[0] = float("nan")
    matrix.write([(1, 2), (2, 3)], logits, 0.5)
    assert matrix.row((1, 2)) == [] and matrix.row((2, 3))


def test_the_prompt_is_counted_where_the_target_has_not_looked():
    matrix = TrigramMatrix(8, 2)
    matrix.write([(1, 2)], logits_of({7: 1.0}), 0.5)
    matrix.count([1, 2, 3, 4, 3, 4, 5, 3, 4, 3])
    assert dict(matrix.row((3, 4))) == {3: pytest.approx(2 / 3), 5: pytest.approx(1 / 3)}
    assert matrix.row((1, 2))[0][0] == 7


@pytest.mark.parametrize("vocabulary", [16, 4096, 152_064])
def test_a_full_matrix_stays_below_its_bound(vocabulary):
    matrix = TrigramMatrix(vocabulary, 12)
    matrix._row_of = dict.fromkeys(range(matrix.rows), 0)  # as if every row were taken
    assert matrix.nbytes <= MOST_BYTES == 2_000_000
    assert matrix.rows == vocabulary**2 or matrix.rows > 7000


def test_at_the_bound_the_pair_that_was_written_first_is_forgotten():
    matrix = TrigramMatrix(100, 1, most_bytes=0)  # gives the fewest rows allowed
    for first in range(matrix.rows + 1):
        matrix.count([first // 100, first % 100, 5])
    assert matrix.filled == matrix.rows == 256
    assert matrix.row((0, 0)) == [] and matrix.row((0, 1)) and matrix.row((2, 56))


# ---- The search ---------------------------------------------------------------------------------

LAWS = st.lists(
    st.lists(st.tuples(st.integers(0, 3), st.floats(0.01, 1.0)), max_size=3, unique_by=lambda t: t[0]),
    min_size=4,
    max_size=4,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(laws=LAWS, simulations=st.integers(1, 60), depth=st.integers(1, 4), most=st.integers(1, 9))
def test_the_books_of_a_search_balance(laws, simulations, depth, most):
    search = DraftSearch(lambda pair: laws[pair[1]], (0, 1), depth)
    search.run(simulations)
    assert search.root.visits == (simulations if laws[1] else 0)
    assert len(search.visited) <= simulations
    for place in search.visited:
        below = sum(child.visits for child in place.children or ())
        ended_here = place.visits - below
        assert ended_here >= 1 and place.depth <= depth
        assert place.parent is search.root or place.parent in search.visited
        assert 0 < place.mean <= 1
    chosen = search.best(most)
    assert len(chosen) == min(most, len(search.visited))
    least = min((place.visits for place in chosen), default=0)
    assert all(place.visits <= least for place in search.visited if place not in chosen)
    for rank, place in enumerate(chosen):
        assert place.parent is search.root or place.parent in chosen[:rank]


def test_the_worth_of_a_place_is_what_can_be_expected_to_be_kept():
    """A chain of 0.5 and 0.8: the first simulation finds 0.5, the second 0.5 * (1 + 0.8)."""
    laws = {1: [(2, 0.5)], 2: [(3, 0.8)], 3: []}
    search = DraftSearch(lambda pair: laws[pair[1]], (0, 1), 2)
    search.run(2)
    (first,) = search.root.children
    assert first.worth * 2 == pytest.approx(0.5 + 0.9) and first.visits == 2
    assert first.children[0].mean * 2 == pytest.approx(0.8)


def test_exploring_spreads_the_visits():
    laws = {1: [(2, 0.6), (3, 0.4)], 2: [(1, 1.0)], 3: [(1, 1.0)]}

    def second(explore):
        search = DraftSearch(lambda pair: laws[pair[1]], (0, 1), 3, explore)
        search.run(60)
        return search.root.children[1].visits / 60

    assert second(0.0) == 0.0 < second(0.3) < second(3.0)
    assert second(50.0) == pytest.approx(0.4, abs=0.03), (
        "in the end visits follow the probabilities"
    )


# ---- The drafter --------------------------------------------------------------------------------


@pytest.mark.parametrize("sampling", [Sampling(), Sampling(1.0, seed=3)], ids=["greedy", "drawn"])
def test_drafts_follow_the_rows_of_the_passes_before(sampling):
    """The test keeps a matrix of its own, as a dictionary; with a share of 1 a row is the last pass."""
    models, prompt, width = shared_models(16), [3, 5, 7], 3
    steps = steps_of(
        models, KEY, prompt, 40, sampling, budget=9, depth=3, successors=width, share=1.0, simulations=30
    )  # fmt: skip
    context, rows, drafted = list(prompt), {(3, 5): [7]}, 0
    for step in steps:
        tree, last = step.tree, (context[-2], context[-1])
        pairs = [last]
        for node, token in enumerate(tree.tokens):
            above = tree.parents[node]
            before = pairs[above + 1]
            assert token in rows[before]
            pairs.append((before[1], token))
        drafted += len(tree)
        best = step.logits.argsort(-1, descending=True)[:, :width].tolist()
        rows |= dict(zip(pairs, best, strict=True))
        context += step.output
    assert drafted and roots(prompt, steps)[0] == 7


def test_the_visits_are_shown():
    steps = steps_of(shared_models(16), KEY, [3, 5, 7], 40, budget=4, simulations=20)
    shown = next(e for s in steps for e in s.tree.exhibits if e.title.startswith("Search tree"))
    visits = [row[3] for row in shown.rows]
    assert visits == sorted(visits, reverse=True) and shown.rows[0][-1] == "yes"


def test_a_step_that_proposes_nothing_writes_no_pair():
    """Its root follows a different token than the root of the last proposal did."""
    models, memory = shared_models(16), Memory()
    drafter = built(AdaptiveDraftDrafter, models)
    drafter.begin(Start([3, 5, 7], Sampling(), DraftChance(0), memory=memory))
    tree, logits = drafter.propose([3, 5, 7], 4), torch.randn(17, 16)
    drafter.observe(Kept(tree, [], [9], logits[: len(tree) + 1], root=7))
    filled = drafter.index.filled
    drafter.observe(Kept(DraftTree(), [], [2], logits[:1], root=9))
    assert drafter.index.filled == filled and drafter.index.row((5, 9)) == []


def test_on_records_that_repeat_their_frame():
    """Twice the tokens per step of plain decoding, without a draft model or earlier texts."""
    models = load_models(family(), {})
    prompt = models.target.tokenizer(prompts("template")[0]["prompt"])["input_ids"]
    steps = steps_of(models, KEY, prompt, 80, budget=12, simulations=48, depth=8, successors=12)
    assert len(text_of(steps)) / len(steps) >= 2
