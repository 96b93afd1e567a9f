"""Questions about a film, with the right answers."""

from __future__ import annotations

import numpy as np

from engine.scenes.film import ABSENT, Actor, Film, seen_first
from engine.scenes.scene_talk import PLACES, Asked, a_thing

DESCRIBE_FILM = "describe the film."
FILM_KINDS = ("film", "motion", "mover", "moment")
NOUNS = tuple(place.split(" ", 1)[1] for place in PLACES)
"""The name of each cell: "the top left", and so on."""


def film_caption(film: Film) -> str:
    """One sentence that names every actor and says how it moves, in the order in which the film lists the actors."""
    clauses = [f"{a_thing(actor)} {_way(actor)}" for actor in film]
    before = ", ".join(clauses[:-1])
    return f"{before} and {clauses[-1]}." if before else f"{clauses[-1]}."


def _way(actor: Actor) -> str:
    place = PLACES[seen_first(actor)]
    if actor.first == ABSENT:
        return f"comes {place}"
    if actor.last == ABSENT:
        return f"leaves {place}"
    if actor.goes:
        return f"goes from {NOUNS[actor.first]} to {NOUNS[actor.last]}"
    return f"stays {place}"


def describe(film: Film, generator: np.random.Generator) -> Asked:
    return Asked("film", DESCRIBE_FILM, film_caption(film))


def motion(film: Film, generator: np.random.Generator) -> Asked:
    """A question about the movement of one actor."""
    name, actor = _named(film, generator)
    return Asked("motion", f"where does {name} go?", f"{name} {_way(actor)}.")


def mover(film: Film, generator: np.random.Generator) -> Asked:
    """A question about which actors go from one place to another."""
    names = [a_thing(actor) for actor in film if actor.goes]
    said = " and ".join(names) or "nothing"
    return Asked("mover", "what moves?", f"{said} {'move' if len(names) > 1 else 'moves'}.")


def moment(film: Film, generator: np.random.Generator) -> Asked:
    """A question about the place of one actor in the first frame or in the last frame."""
    name, actor = _named(film, generator)
    when = ("first", "last")[int(generator.integers(2))]
    cell = getattr(actor, when)
    said = "not there" if cell == ABSENT else PLACES[cell]
    return Asked("moment", f"where is {name} {when}?", f"{when} {name} is {said}.")


FILM_ASKERS = (describe, motion, mover, moment)


def asked_film(kind: str, film: Film, generator: np.random.Generator) -> Asked:
    """A question of this kind about the film, with its answer."""
    return FILM_ASKERS[FILM_KINDS.index(kind)](film, generator)


FILM_WORDS = (
    "comes",
    "does",
    "film",
    "first",
    "from",
    "go",
    "goes",
    "last",
    "leaves",
    "move",
    "moves",
    "not",
    "stays",
    "to",
)
"""Words in questions and answers about films, besides the words about scenes."""


def _named(film: Film, generator: np.random.Generator) -> tuple[str, Actor]:
    actor = film[int(generator.integers(len(film)))]
    return f"the {actor.colour} {actor.shape}", actor
