"""The walk of rules that first choose the target's token and then look for it in the tree."""

from collections.abc import Callable

from engine.core.rule import Judgement, Verdict, statuses
from engine.core.tree import ROOT, DraftTree


def follow(
    tree: DraftTree,
    rule: str,
    choose: Callable[[int, int], int],
    weigh: Callable[[int, list[int], int], list[float]],
) -> Verdict:
    """Descend while the chosen token is a child of the place where the walk stands.

    choose(place, depth): the token that must come after ``place``, which is ROOT or a node of
        this depth; called once per place.
    weigh(place, children, token): p of each child, as the judgements show it.

    Every child of every place of the walk is judged, and no other node is looked at.
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
    accepted = walk[1:]
    return Verdict(
        accepted=accepted,
        status=statuses(len(tree), accepted, judgements),
        judgements=judgements,
        final_token=token,
        final="recovered" if children else "bonus",
        walk=walk,
    )
