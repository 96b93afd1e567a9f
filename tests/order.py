"""The order in which parallel test processes take the files: long computations must not begin last."""

HEAVIEST = [
    "engine/test_family", "verifiers/test_pairs", "app/test_agreement", "engine/test_trace",
    "kernels/test_under_interpreter", "drafters/test_omnidraft", "app/test_page",
    "app/test_restart", "engine/test_unrecorded", "engine/test_terminal", "app/test_neighbours",
    "app/test_compare", "engine/test_numbers", "app/test_own_pair", "app/test_figures",
    "app/test_fence", "app/test_watch", "app/test_whatif", "app/test_tour", "engine/test_together",
    "engine/test_safe_opening", "engine/test_command_line", "app/test_examples", "app/test_learn",
    "app/test_methods", "viz/test_replay",
]  # fmt: skip
"""The files that compute for longest, the longest first, counting the processes that their tests start."""


def place(nodeid: str) -> int:
    """The position of this test's file; all files that are not listed come after the listed ones."""
    file = nodeid.split("::")[0].removeprefix("tests/").removesuffix(".py")
    return HEAVIEST.index(file) if file in HEAVIEST else len(HEAVIEST)
