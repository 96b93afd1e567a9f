"""Ways to walk down a tree, shared by two kinds of rules: rules that choose the target's token first and then look for
it among the drafted tokens, and lossy rules that keep tokens which are close enough to the target's choice."""

from collections.abc import Callable, Sequence

from torch import Tensor

from engine.core.exhibits import Table, Token
from engine.core.rule import Case, Final, Judgement, Verdict, statuses
from engine.core.sampling import display_distribution
from engine.core.tree import ROOT, DraftTree


def verdict_of(
    tree: DraftTree, walk: list[int], judgements: list[Judgement], token: int, final: Final, **more
) -> Verdict:
    """The verdict of a walk from the root down, all of whose nodes are kept. token: the final token. more: further
    fields of ``Verdict``."""
    accepted = walk[1:]
    status = statuses(len(tree), accepted, judgements)
    return Verdict(accepted, status, judgements, token, final, walk, **more)


def follow(
    tree: DraftTree,
    rule: str,
    choose: Callable[[int, int], int],
    weigh: Callable[[int, list[int], int], list[float]],
) -> Verdict:
    """Descend while the chosen token is a child of the current place.

    choose(place, depth): the token that must come after ``place``, which is ROOT or a node of
        this depth; called once per place.
    weigh(place, children, token): p of each child, for its judgement.

    Every child of every place of the walk is judged, and no other node is visited.
    """
    judgements: list[Judgement] = []
    walk = [ROOT]
    while True:
        place = walk[-1]
        token = choose(place, len(walk) - 1)
        children = tree.children(place)
        match = None
        for child, p in zip(children, weigh(place, children, token), strict=True):
            hit = tree.tokens[child] == token
            judgements.append(Judgement(child, rule, p, None, float(hit), None))
            if hit:
                match = child
        if match is None:
            break
        walk.append(match)
    return verdict_of(tree, walk, judgements, token, "recovered" if children else "bonus")


def law_shown(case: Case) -> Tensor:
    """p [N+1, V] of the root and N nodes, on the CPU; at temperature 0 the plain softmax, because p itself is then
    one-hot."""
    greedy = case.sampling.greedy
    return (display_distribution(case.logits, case.sampling) if greedy else case.p).cpu()


def keep_while(
    case: Case, rule: str, p: Tensor, near_enough: Callable[[Tensor, int], bool]
) -> Verdict:
    """Descend to the first child that is near enough, and stop where no child is. No coin is tossed.

    p: from ``law_shown``. near_enough(p, token): whether a token may stay where the target's distribution is p [V]. A
    token that the constraint forbids never stays. After the kept path a token is drawn from the target's law.
    """
    tree, walk = case.tree, [ROOT]
    allowed = allowed_nodes(case)
    judgements: list[Judgement] = []
    while True:
        place, kept = walk[-1], None
        children = tree.children(place)
        for node in children:
            here, token = p[place + 1], tree.tokens[node]
            near = allowed[node] and near_enough(here, token)
            judgements.append(Judgement(node, rule, float(here[token]), None, float(near), None))
            if near:
                kept = node
                break
        if kept is None:
            break
        walk.append(kept)
    token = case.chance.draw(case.p[place + 1], case.position + len(walk) - 1)
    return verdict_of(tree, walk, judgements, token, "recovered" if children else "bonus")


def allowed_nodes(case: Case) -> list[bool]:
    """For each node, whether the constraint, already in the logits, allows it after its parent."""
    tree = case.tree
    if not len(tree):
        return []
    rows = [parent + 1 for parent in tree.parents]
    return (case.logits[rows, tree.tokens] > float("-inf")).tolist()


def show_judged(
    case: Case,
    verdict: Verdict,
    title: str,
    columns: Sequence[str],
    row: Callable[[Judgement], Sequence],
) -> None:
    """Add a table with a row for each judged token: the token, and the cells that ``row`` returns for its judgement."""
    rows = [[Token(case.tree.tokens[entry.node]), *row(entry)] for entry in verdict.judgements]
    note = "Lossy: a token may stay that the target would not have written itself."
    if rows:
        verdict.exhibits.append(Table(title, columns, rows, note=note))
