"""Jacobi decoding: the target improves its own guesses in every pass (``engine.methods.shared.guessed_window``)."""

from engine.methods.shared.guessed_window import GuessedWindow


class JacobiDrafter(GuessedWindow):
    key = "jacobi"
    title = "Jacobi"
    summary = "The target guesses a window of tokens and improves all of them in every pass."
