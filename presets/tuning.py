"""What ``engine tune`` and the page offer for a tuning: our own prompts, and machines that are not here."""

from engine.errors import UserError
from engine.tune.prompt_sample import PromptText
from engine.tune.tuning_request import OtherMachine
from presets.families import converses
from presets.listed import KINDS, TURNS, prompts
from presets.machines import machines


def usual_prompts(family: str = "") -> list[PromptText]:
    """Our own prompts, of all kinds; turns for a family that converses."""
    kinds = TURNS if converses(family) else KINDS
    return [PromptText(entry["prompt"], kind) for kind in kinds for entry in prompts(kind)]


def machine_named(name: str) -> OtherMachine:
    """The machine of this name, or of which this is a part of the name. Raises UserError that names the known ones."""
    known = [machine for machine in machines() if name.casefold() in machine["name"].casefold()]
    if len(known) != 1 or not name.strip():
        names = ", ".join(machine["name"] for machine in machines())
        raise UserError(f"There is no machine {name!r}; known are: {names}.")
    (machine,) = known
    return OtherMachine(machine["name"], machine["bandwidth"], machine["arithmetic"])
