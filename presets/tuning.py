"""The project's own prompts and the other machines that ``engine tune`` and the page offer for a tuning, and the record
of a tuning that was made earlier, with which the Tune tab opens."""

import gzip
from collections.abc import Collection, Iterator

from engine.cache_folder import write_whole
from engine.errors import UserError
from engine.trace.reading import to_line
from engine.tune.prompt_sample import PromptText, Sample
from engine.tune.tuning import Tuning
from engine.tune.tuning_request import OtherMachine, TuningRequest
from presets.families import converses, family
from presets.listed import HERE, KINDS, TURNS, prompts
from presets.machines import machines

EARLIER = HERE / "traces" / "tuning.ndjson.gz"
OF_A_KIND = 3
"""How many of the project's prompts of each kind a tuning on the page takes."""
USUAL = ("chain", "dyspec", "prompt_lookup", "suffix", "eagle", "dflash")
"""The drafters that the page tries unless a visitor wants all: one of each sort, most of them known to serving
engines."""
TEXTS = (1, 2, 4, 8)
"""Numbers of texts that share a pass on the page. A pass over more texts would hold up other visitors for long."""
NEW_TOKENS = 48


def first_prompts(
    models: str = "", kinds: Collection[str] = (), most: int | None = OF_A_KIND
) -> Iterator[PromptText]:
    """Yield the first ``most`` prompts (None: all) of each named kind, or of all kinds if none is named. models: the
    name of a family; for one that converses, they are user turns."""
    available = TURNS if converses(models) else KINDS
    for kind in [name for name in available if name in kinds] or available:
        yield from (PromptText(entry["prompt"], kind) for entry in prompts(kind)[:most])


def record_tuning() -> None:
    """Make the tuning that the page's Tune tab makes with its usual settings, and keep its record in EARLIER."""
    asked = TuningRequest(
        family(), Sample.of(first_prompts()), USUAL, new_tokens=NEW_TOKENS, texts=TEXTS
    )
    head, *lines = (line for line in Tuning(asked).lines() if line["kind"] != "progress")
    kept = [{**head, "family": "", "recorded": True}, *lines]
    write_whole(EARLIER, gzip.compress("".join(map(to_line, kept)).encode("utf-8"), mtime=0))


def earlier_tuning() -> str:
    """Return the record in EARLIER: one JSON object on each line."""
    return gzip.decompress(EARLIER.read_bytes()).decode("utf-8")


def usual_prompts(family: str = "") -> list[PromptText]:
    """Return the project's own prompts of all kinds; for a family that converses, they are user turns."""
    return [*first_prompts(family, most=None)]


def machine_named(name: str) -> OtherMachine:
    """Return the one machine whose name contains ``name``. Raises UserError, which lists the known names, if there is
    none or more than one."""
    matches = [machine for machine in machines() if name.casefold() in machine["name"].casefold()]
    if len(matches) != 1 or not name.strip():
        names = ", ".join(machine["name"] for machine in machines())
        raise UserError(f"There is no machine {name!r}; known are: {names}.")
    (machine,) = matches
    return OtherMachine(machine["name"], machine["bandwidth"], machine["arithmetic"])
