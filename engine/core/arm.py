"""First guesses about a drafter that another drafter may choose for a step. Observed steps replace the guesses."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Arm:
    """First guesses about one drafter. Costs are in target passes over one row.

    sizes: the numbers of tokens that the drafter may draft at a step; they set its ``size_option``.
    chance: the probability that a drafted token is kept, given that all tokens before it are kept.
    start: the cost of a draft apart from its tokens. token: the cost of each drafted token.
    catch_up: the cost of each token of the text that the drafter has not read yet.
    """

    sizes: tuple[int, ...]
    chance: float
    start: float = 0.0
    token: float = 0.0
    catch_up: float = 0.0
