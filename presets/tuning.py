"""The project's own prompts and the other machines that ``engine tune`` and the page offer for a tuning."""

from engine.errors import UserError
from engine.tune.prompt_sample import PromptText
from engine.tune.tuning_request import OtherMachine
from presets.families import converses
from presets.listed import KINDS, TURNS, prompts
from presets.machines import machines


def usual_prompts(family: str = "") -> list[PromptText]:
    """Return the project's own prompts of all kinds; for a family that converses, they are user turns."""
    kinds = TURNS if converses(family) else KINDS
    return [PromptText(entry["prompt"], kind) for kind in kinds for entry in prompts(kind)]


def machine_named(name: str) -> OtherMachine:
    """Return the one machine whose name contains ``name``. Raises UserError, which lists the known names, if there is
    none or more than one."""
    matches = [machine for machine in machines() if name.casefold() in machine["name"].casefold()]
    if len(matches) != 1 or not name.strip():
        names = ", ".join(machine["name"] for machine in machines())
        raise UserError(f"There is no machine {name!r}; known are: {names}.")
    (machine,) = matches
    return OtherMachine(machine["name"], machine["bandwidth"], machine["arithmetic"])
