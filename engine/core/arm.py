"""First guesses about a drafter that another drafter may choose for a step; observed steps replace the guesses."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Arm:
    """sizes: tokens to draft, any of which may be chosen at a step, by the drafter's ``size_option``. chance: with which a
    drafted token is kept, if those before it are. start, token: cost of a draft and of each token in it, in passes of the
    target over one row. catch_up: the same of each token of the text that the drafter has not read.
    """

    sizes: tuple[int, ...]
    chance: float
    start: float = 0.0
    token: float = 0.0
    catch_up: float = 0.0
