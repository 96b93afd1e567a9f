"""Why a token was kept or refused: one table of templates per rule, for the run line of a trace.

Names: ``<judgement rule>.kept`` and ``.refused``; ``.sure`` for a token that was certain to be kept (without ``.sure``,
``.kept`` serves); ``.replaced`` follows the last refusal at a place and names the token that was drawn instead;
``.recovered`` and ``.bonus`` explain the final token, as ``recovered`` and ``bonus`` do for every judgement rule. The
page fills in {token} {p} {q} {accept} {coin} {final} as text.
"""

_BONUS = (
    "Every token on this path was kept, and the same pass of the target also gave the token after "
    "them: {final}."
)

GREEDY = {
    "greedy.kept": "The target’s favourite here was {token} (p {p}), just what was drafted: accepted.",
    "greedy.refused": "The target’s favourite here was {final}, not {token} (p {p}): rejected.",
    "recovered": "No drafted token was the target’s favourite here, so its own went into the text: "
    "{final}.",
    "bonus": _BONUS,
}

SAMPLER_MATCH = {
    "sampler_match.kept": "The target drew its own token from p and got {token} (p {p}), just what "
    "was drafted: accepted.",
    "sampler_match.refused": "The target drew its own token from p and got {final}, not {token} "
    "(p {p}): rejected.",
    "recovered": "The target drew its own token from p, and none of the drafted ones was it: {final}.",
    "bonus": _BONUS,
}


def _drawn(rule: str) -> dict[str, str]:
    """The sentences of a judgement that compares p with the q from which the token was drawn."""
    left = "what is left of p after taking q away"
    return {
        f"{rule}.kept": "q gave {token} {q}, p only {p}, so it was to be kept with probability {accept}; "
        "the coin fell at {coin}: accepted.",
        f"{rule}.sure": "q gave {token} {q} and p no less, {p}, so it was sure to be kept: accepted.",
        f"{rule}.refused": "q gave {token} {q}, p only {p}, so it was to be kept with probability "
        "{accept}; the coin fell at {coin}: rejected.",
        f"{rule}.replaced": f"In its place a new token was drawn from {left}: {{final}}.",
        f"{rule}.recovered": "After {token} had been refused here, a new token was drawn from "
        f"{left}: {{final}}.",
    }


REJECTION = {
    "one_hot.kept": "{token} was picked, not drawn, so q counts as 1; p gave it {p}, so it was "
    "to be kept with probability {accept}; the coin fell at {coin}: accepted.",
    "one_hot.sure": "{token} was picked, not drawn, so q counts as 1; p gave it {p}, so it was "
    "sure to be kept: accepted.",
    "one_hot.refused": "{token} was picked, not drawn, so q counts as 1; p gave it {p}, so it "
    "was to be kept with probability {accept}; the coin fell at {coin}: rejected.",
    "one_hot.replaced": "In its place a new token was drawn from p without the refused tokens: {final}.",
    "one_hot.recovered": "After {token} had been refused here, a new token was drawn from p without "
    "the refused tokens: {final}.",
    **_drawn("iid"),
    **_drawn("without_replacement"),
    "recovered": "After {token} had been refused here, a new token was drawn from what the refusals "
    "left of p: {final}.",
    "bonus": _BONUS,
}

SENTENCES = {"greedy": GREEDY, "rejection": REJECTION, "sampler_match": SAMPLER_MATCH}
"""The tables of sentences by the key of the rule."""
