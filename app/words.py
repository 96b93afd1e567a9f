"""What the page says of itself. Pairs are a word and its explanation, shown on hover and focus."""

TITLE = "Draftscope"
HEADLINE = "Watch a language model guess ahead, and check its guesses."

WATCH_LEAD = [
    "A small ",
    [
        "draft model",
        "A fast model, or a trick, that guesses what the large model is about to write.",
    ],
    " guesses the next few tokens, often as a ",
    [
        "tree",
        (
            "Several guesses at once: each branch is one way in which the text may go on. "
            "Its root is the last token that is already certain."
        ),
    ],
    "; the large ",
    ["target", "The model whose text this is. It alone decides what is written."],
    " reads them all in one pass and keeps those it ",
    [
        "agrees with",
        (
            "A rule compares the target's probability p with the draft's q and, above temperature 0, "
            "tosses a coin. An exact rule leaves the target's text as it would have been."
        ),
    ],
    ". Every run here is real: nothing is staged or slowed down.",
]

WATCH_HINT = "You see a run made earlier. Run makes a new one."
COMPARE_HINT = "Race makes them take turns, one step each."

COMPARE_LEAD = [
    (
        "The same prompt and the same target, raced by different ways of drafting. Lanes take turns on "
        "the machine, and each has its own clock of "
    ),
    [
        "compute time",
        (
            "The milliseconds spent working on this lane only: drafting, verifying, judging, "
            "committing. Waiting for the other lanes is not counted."
        ),
    ],
    ".",
]

FOOT = (
    "Runs on this server and asks no other. The embedded models are small and were trained for "
    "this page: watch how they guess, not what they say."
)
