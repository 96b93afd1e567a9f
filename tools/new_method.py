"""A folder for a new method, to begin with: python -m tools.new_method KEY [--in DIR]

The drafter repeats the last token; it passes every test and ``engine prove``. Change it from there.
"""

import argparse
import keyword
import sys
from pathlib import Path

from engine.errors import UserError
from engine.finding import HERE
from engine.methods import own_drafters
from engine.printable import one_line

DRAFTER = '''"""Says what the method does, and whose it is (authors, paper, year)."""

from engine.core.drafter import Drafter
from engine.core.options import Option
from engine.core.tree import DraftTree


class {name}Drafter(Drafter):
    key = "{key}"
    title = "{title}"
    family = "retrieval"
    summary = "Repeats the last token."
    options = (Option("length", "int", 2, "Tokens drafted in a step.", 1, 32, label="Length"),)
    trial = {{"length": 2}}

    @classmethod
    def kinds(cls, sampling):
        return frozenset({{"one_hot"}})  # picked without chance: exact with every exact rule

    def propose(self, context, max_depth):
        tree = DraftTree()
        tree.chain([context[-1]] * min(self.settings["length"], max_depth), "repeated")
        return tree
'''
CARD = """title = "{title}"
family = "retrieval"
kind = "drafter"
exactness = "exact"
needs_training = false
mechanism = "The last token is drafted again, a few times. The target reads all of them in one pass."
watch = "A repeated token is kept, others are not."
"""


def write(key: str, place: Path) -> Path:
    """Write the folder of a new method below ``place``, and return it. Raises UserError, one sentence, for a key that
    cannot be used."""
    if (
        not key.isidentifier()
        or key.startswith("_")
        or keyword.iskeyword(key)
        or key != key.lower()
    ):
        raise UserError(
            f"A key is a name in small letters, digits and underscores, not {one_line(key)!r}."
        )
    if key in own_drafters() or (place / key).exists():
        raise UserError(f"There is a method {key} already.")
    words = key.split("_")
    fields = {
        "key": key,
        "title": " ".join(words).capitalize(),
        "name": "".join(map(str.capitalize, words)),
    }
    folder = place / key
    folder.mkdir(parents=True)
    for name, text in (("drafter.py", DRAFTER), ("card.toml", CARD)):
        (folder / name).write_text(text.format(**fields), "utf-8")
    if place.resolve() == HERE.resolve():
        (folder / "__init__.py").write_text("", "utf-8")
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.new_method", description=__doc__)
    parser.add_argument("key")
    parser.add_argument("--in", dest="place", metavar="DIR", help="a folder outside the engine")
    given = parser.parse_args()
    try:
        folder = write(given.key, Path(given.place) if given.place else HERE)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(
        f"{folder} is a method. Prove it: python -m engine prove {folder if given.place else given.key}"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
