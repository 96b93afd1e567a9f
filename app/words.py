"""The texts of the page. A list of two is a word and its explanation, which appears on hover and focus."""

TITLE = "Draftscope"
HEADLINE = "Speculative decoding, step by step"

WATCH_LEAD = [
    "A ",
    [
        "small model",
        "It is fast and often right. Some methods guess without any model: what they guess is the draft, too.",
    ],
    " (the draft) guesses ahead; a ",
    [
        "large model",
        "The model whose text this is. It alone decides what is written.",
    ],
    " (the target) checks all ",
    [
        "guesses",
        (
            "Each is a token: a word or a piece of one; ␣ is a space in it, ⏎ a new line. Several guesses at once make "
            "a tree; its root is the last token that is already certain."
        ),
    ],
    " in one pass, and so reads its ",
    [
        "weights",
        (
            "The numbers that a model is made of, often billions. Reading them takes most of the time of a pass, so a "
            "pass over eight words takes far less than eight passes over one."
        ),
    ],
    " once, not once a word.",
]

WATCH_HINT = "This run was made earlier. Press Run for a new one."
COMPARE_HINT = "This race was run earlier. Press Race for a new one."

TUNE_LEAD = [
    "Will guessing ahead pay for your prompts: which ",
    [
        "drafter",
        "What guesses the next tokens: a small model, extra heads, or a search in the text.",
    ],
    ", how many tokens, and from how many ",
    [
        "texts at once",
        "A server writes several texts with one pass of the target. The more there are, the less room is left for drafts.",
    ],
    " does it hurt? It is measured here, on this machine, and the best settings are checked by running them beside plain decoding.",
]
TUNE_HINT = "A first answer takes half a minute on a quiet machine, some minutes on a busy one; Stop keeps what has been measured."

METHODS_LEAD = [
    "Each line opens on how a method works, what its paper ",
    [
        "claims",
        "Measured with other models on other machines, so it cannot be compared with our figures.",
    ],
    " and what was measured here. A ",
    ["lossless", "The target's text, or its distribution above temperature 0, stays as it was."],
    " one leaves the target's text as it was, a ",
    ["lossy", "May change what is written, usually for more speed."],
    " one may change it, and one of ",
    ["another law", "Means to write other texts than the target's own, by a law that it names."],
    " writes other texts on purpose.",
]

ABOUT_MODELS = {
    "": "14 M parameters, trained for this page: simple stories, sums, code. Nearly every drafter runs with it.",
    "smollm2": "SmolLM2-135M-Instruct answers questions; the prompt is your turn. Ten times larger.",
    "hybrid": "2.4 M parameters, most layers Mamba-2: how trees are checked on a state.",
    "experts": "1.6 M parameters, mostly small experts; neighbouring tokens use the same ones, so a pass skips most.",
    "experts-topk": "The same size, a usual mixture: each token uses eight experts of its own choice.",
    "image": "0.4 M parameters that draw digits, token by token.",
    "captions": "0.9 M parameters that see a small picture or a film of eight frames: ask what is where, how many, what moves.",
}
"""Name of a family of models -> a sentence about it."""


LEARN_LEAD = [
    "From “what is a ",
    [
        "token",
        "A token is a word or a piece of one: a model reads and writes its text token by token.",
    ],
    (
        "” to predicting, before you press Run, whether guessing ahead will pay. Every lesson asks "
        "you first and shows you then, on real runs of the models of this page. Your answers stay "
        "in your browser. New to this? Begin with lesson 1; later lessons build on earlier ones."
    ),
]

OTHER_FAMILIES = {
    "rule": "acceptance rule",
    "loop": "decoding loop",
    "policy": "drafting policy",
    "recipe": "training recipe",
    "meter": "meter",
    "constraint": "constraint",
}
"""Titles of the families of cards that describe no drafter."""

OWN = "Your own"
WATCH_OWN = "Your own choice: no example has this prompt with this drafter."
COMPARE_OWN = "Your own choice: no example has this prompt with these lanes."

COMPARE_LEAD = [
    "Several methods guess ahead for one large model, the target, on one prompt. Each has its own clock of ",
    [
        "compute time",
        (
            "The milliseconds spent working on this lane only: reading the prompt, drafting, "
            "verifying, judging, committing. Waiting for the other lanes is not counted."
        ),
    ],
    ".",
]

_ACCEPTED = [
    "accepted in a step",
    "Drafted tokens that were kept in one step. The target's own token comes on top of them.",
]

RUN_FIGURES = [
    "The run in figures. Terms used in the figures: ",
    _ACCEPTED,
    ", ",
    [
        "depth in the draft",
        "How far a guessed token stands behind the certain text: 1 is the very next token.",
    ],
    ", ",
    [
        "where it was reached",
        (
            "Counts only the steps in which every token before this depth was kept. Every step that "
            "drafted reaches depth 1, few reach the deeper ones: a high share deep down can stand "
            "beside few tokens a step."
        ),
    ],
    ", ",
    [
        "if each depth kept as many",
        "How often a draft would be kept to this depth if every depth kept the same share of the tokens that reach it.",
    ],
    ", ",
    ["q (draft)", "The probability that the draft gave to the token it guessed."],
    ", ",
    ["p (target)", "The probability that the target gives to the same token."],
    ", ",
    [
        "prefill",
        (
            "Reading the prompt, once, before the first step. Lanes of a comparison share one "
            "reading; each is charged its time."
        ),
    ],
    ", ",
    ["verify", "The one pass of the target that reads the whole draft."],
    ", ",
    [
        "mean tree",
        (
            "All draft trees of the run laid over one another: the larger a dot, the more often it "
            "was drafted; the bluer, the more often kept."
        ),
    ],
    ".",
]

RACE_FIGURES = [
    "The race in figures. Terms used in the figures: ",
    [
        "tokens per second",
        "New tokens in a second of this lane's own compute time, the reading of the prompt included.",
    ],
    ", ",
    _ACCEPTED,
    ", ",
    ["share of steps", "Of all steps of a lane, so that long and short runs can be compared."],
    ".",
]

FOOT = (
    "Runs on this server and asks no other. The embedded models are small and were trained for "
    "this page: watch how they guess, not what they say."
)

TOUR = {
    "take": "Take the tour",
    "invitation": "New here? Two minutes.",
    "decline": "No, thanks",
    "done": "Yes, that is it. Next leads on.",
    "stops": [
        {
            "name": "text",
            "title": "What was written",
            "text": (
                "This is the target's text, after the prompt. A blue line marks tokens that the draft "
                "guessed first; the others the target wrote itself."
            ),
            "ask": "Click a marked token: it takes you to the step that wrote it.",
        },
        {
            "name": "tree",
            "title": "One step, one tree",
            "text": (
                "The draft guesses ahead, often several ways at once. The target reads all of them in "
                "one pass: blue guesses are kept, crossed-out ones refused."
            ),
            "ask": "Click a refused token, one with a cross.",
        },
        {
            "name": "why",
            "title": "Why it was refused",
            "text": (
                "p is the target's probability for a token, q the draft's. At temperature 0 a guess is kept if "
                "it is the target's favourite. At a higher temperature a coin decides: the guess is kept with "
                "chance p divided by q."
            ),
            "ask": "Point at a dotted word here: it explains itself.",
        },
        {
            "name": "timeline",
            "title": "All steps of the run",
            "text": (
                "One bar a step: above the tokens it gained, below the milliseconds it took. Tall bars "
                "are where guessing ahead paid."
            ),
            "ask": "Drag along the bars, or use the arrow keys.",
            "fingers": "Drag along the bars.",
        },
        {
            "name": "drafter",
            "title": "Other ways to guess",
            "text": (
                "A chain, a tree, copying from the text, a whole block at once: each is good at "
                "something else. Under a lossless rule none of them changes what the target would write."
            ),
            "ask": "Pick another drafter.",
        },
        {
            "name": "run",
            "title": "Now a run of your own",
            "text": (
                "Run writes the prompt on with your drafter, live, while you watch. Compare lets several "
                "drafters race on one prompt."
            ),
            "ask": "Press Run, or open Compare.",
        },
    ],
    "farewell": {
        "title": "That was the tour",
        "text": (
            "Pause, step back, change one thing and run it again. Dotted words explain themselves, "
            "and the tour can always be taken again from the top of the page."
        ),
    },
}
