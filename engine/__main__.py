"""The command line: list, run, bench, tune, prove, export, import, inspect, datastore."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from engine.cli import terminal
from engine.cli.flags import parser
from engine.errors import UserError
from engine.finding import OUTSIDE
from engine.text_file import text_of


def main(arguments: list[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0; 2 for a mistake of the user's, which one line on standard error
    explains; 128 plus the number of the signal that ended the run."""
    terminal.speak_unicode()
    try:
        flags = parser(_list, _run, _bench, _tune, _embedded_target).parse_args(arguments)
        if getattr(flags, "methods", None) is not None:
            os.environ[OUTSIDE] = flags.methods  # read when methods are first looked for
        if getattr(flags, "weights", None) is not None:
            from engine.fast.cpu.stored_products import SETTING

            os.environ[SETTING] = flags.weights  # read when the first model is compiled
        return flags.action(flags)
    except UserError as error:
        terminal.say(f"error: {error}")
        return 2
    except terminal.ReaderGone:
        return 0
    except KeyboardInterrupt:
        terminal.say("cancelled")
        return 128 + 2


def _list(flags: argparse.Namespace) -> int:
    from engine.catalogue import catalogue
    from engine.methods import unusable
    from presets import methods, models, outside_cards, presets

    listing = catalogue([card.to_dict() for card in presets()], methods(), models())
    if flags.json:
        terminal.write(json.dumps(listing, ensure_ascii=False, indent=1) + "\n")
        return 0
    rows = []
    for drafter in listing["drafters"]:
        exact = "exact" if drafter["lossless"] else "other" if drafter["law"] else "lossy"
        rows.append(f"{drafter['key']:14} {drafter['family']:10} {exact:6} {drafter['summary']}")
    for rule in listing["verifiers"]:
        rows.append(f"{rule['key']:14} {'verifier':10} {rule['kind']:6} {rule['summary']}")
    for family in listing["models"]:
        here = "here" if family["here"] else "make real"
        rows.append(f"{family['name'] or 'embedded':18} {'models':10} {here:14} {family['title']}")
    for card in listing["presets"]:
        rows.append(f"{card['name']:18} {'preset':10} {card['drafter']:14} {card['title']}")
    terminal.write("".join(f"{row}\n" for row in rows))
    for sentence in unusable().values():
        terminal.say(f"left out: {sentence}")
    for sentence in outside_cards()[1].values():
        terminal.say(sentence)
    return 0


def _run(flags: argparse.Namespace) -> int:
    from engine.run import open_run
    from engine.trace import Outlet

    outlet = None if flags.trace is None else Outlet(flags.trace)
    bar = terminal.Bar()
    try:
        run = open_run(_request(flags), tell=bar)
    finally:
        bar.close()
    failures: list[UserError] = []
    with terminal.listening() as interrupts:
        lines = _show(run, interrupts, failures)
        if outlet is None:
            for _ in lines:
                pass
        else:
            outlet.write(lines)
    if failures:
        raise failures[0]
    return 0 if interrupts.signal is None else 128 + interrupts.signal


def _bench(flags: argparse.Namespace) -> int:
    from engine.bench.suites import run_suite
    from engine.serving.engine_address import is_served
    from presets import KINDS, TURNS, prompts

    if is_served(flags.target or ""):
        raise UserError("A bench measures models of this machine, not one behind an engine.")
    workloads = {kind: prompts(kind) for kind in (TURNS if flags.suite == "real" else KINDS)}
    beside_openvino = flags.suite == "peers" and flags.peer == "openvino"
    suite = "openvino" if beside_openvino else flags.suite
    own = {"pictures": "image", "real": "smollm2"}.get(suite) if flags.target is None else None
    models = _models(flags) if own is None else _family(own, flags)
    run_suite(suite, models, workloads, flags.quick, flags.json)
    return 0


def _tune(flags: argparse.Namespace) -> int:
    from engine.cli.tune_command import tune
    from presets.tuning import machine_named, usual_prompts

    models = _models(flags)
    return tune(flags, models, lambda: usual_prompts(models.family), machine_named)


def _embedded_target() -> str:
    from presets import family

    return family().target


def _request(flags: argparse.Namespace):
    from engine.run import RunRequest
    from presets import preset

    card = preset(flags.preset) if flags.preset else None
    fields = {name: getattr(flags, name) for name in ("top_k", "top_p", "seed", "dtype", "device")}
    for name in ("drafter", "verifier", "max_new_tokens", "temperature"):
        if getattr(flags, name) is not None:
            fields[name] = getattr(flags, name)
        elif card is not None:
            fields[name] = getattr(card, name)
    same_drafter = card is not None and fields["drafter"] == card.drafter
    options = (dict(card.options) if same_drafter else {}) | _options(flags.option)
    same_rule = card is not None and fields.get("verifier") == card.verifier
    rule_options = (dict(card.rule_options) if same_rule else {}) | _options(flags.rule_option)
    schema = None if flags.json_schema is None else text_of(Path(flags.json_schema))
    return RunRequest(
        prompt="" if flags.messages else _with_picture(flags, _prompt(flags, card)),
        messages=_messages(flags, card),
        stop=flags.stop,
        own_sampling=flags.own_sampling,
        models=_models(flags),
        options=options,
        rule_options=rule_options,
        recorded=flags.trace is not None,
        json_schema=card.json_schema if schema is None and card else schema,
        python_names=flags.python_names or (card is not None and card.python_names),
        heal=flags.heal or (card is not None and card.heal),
        **fields,
    )


def _models(flags: argparse.Namespace):
    from engine.parts.loading import ModelPaths
    from engine.parts.mtp_fields import own_layer
    from presets import families, preset
    from presets.fetched import sources

    if flags.target is None:
        name = preset(flags.preset).models if getattr(flags, "preset", None) else ""
    elif flags.preset is not None:
        raise UserError("Give --preset or --target, not both.")
    elif flags.target in {*families(), *sources()} and not Path(flags.target).is_dir():
        name = flags.target
    else:
        return ModelPaths(flags.target, own_layer(flags.target)).with_parts(_parts(flags))
    return _family(name, flags)


def _family(name: str, flags: argparse.Namespace):
    """The models of this family, with the parts (trained modules beside the target) that the flags name. Raises
    UserError if the family's target has not been fetched yet."""
    from presets import family
    from presets.fetched import check_there

    paths = family(name).with_parts(_parts(flags))
    check_there(name)
    return paths


def _parts(flags: argparse.Namespace) -> dict[str, str | None]:
    """The folder of each part, by role, as --part NAME=DIR, --draft and --diffusion give it."""
    named = {"draft": flags.draft, "diffusion": flags.diffusion}
    return named | _options(flags.part, "A part")


def _prompt(flags: argparse.Namespace, card) -> str:
    if flags.prompt is not None and flags.prompt_file is not None:
        raise UserError("Give --prompt or --prompt-file, not both.")
    if flags.prompt is not None:
        return flags.prompt
    if flags.prompt_file is not None:
        return text_of(Path(flags.prompt_file))
    if card is not None:
        return card.prompt
    raise UserError("Give a prompt: --prompt TEXT, --prompt-file FILE or --preset NAME.")


def _with_picture(flags: argparse.Namespace, words: str) -> str:
    """The prompt with the picture of --picture, scaled to the size that models here see."""
    from engine.scenes.brought import read, small
    from engine.scenes.prompt_picture import joined

    return words if flags.picture is None else joined(words, small(read(Path(flags.picture))))


def _messages(flags: argparse.Namespace, card) -> list[dict] | None:
    """The conversation to continue; None if the prompt is plain text outside any conversation."""
    from presets.families import converses

    if flags.messages is None:
        chat = flags.chat or (card is not None and converses(card.models))
        if flags.system is not None and not chat:
            raise UserError("--system belongs to --chat.")
        turns = [] if flags.system is None else [{"role": "system", "content": flags.system}]
        return [*turns, {"role": "user", "content": _prompt(flags, card)}] if chat else None
    if flags.chat or flags.prompt is not None or flags.prompt_file is not None:
        raise UserError("Give --messages or a prompt, not both.")
    try:
        return json.loads(text_of(Path(flags.messages)))
    except (ValueError, RecursionError):
        raise UserError(f"{Path(flags.messages).name} is not valid JSON.") from None


def _options(pairs: list[str], thing: str = "An option") -> dict[str, str]:
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"{thing} is given as name=value, not {pair!r}.")
        options[name] = value
    return options


def _show(run, interrupts: terminal.Interrupts, failures: list[UserError]) -> Iterator[str]:
    """Yields the trace's lines, and writes the text to the terminal as it comes.

    If a signal asks the process to stop, or nobody reads the text any more, the run is cancelled between two steps. If
    the run fails, the failure is added to ``failures``. In all these cases the trace still gets its summary as its last
    line.
    """
    header = run.header()
    yield header
    constraint = json.loads(header).get("constraint", {})
    shown = (
        len(constraint["text"]) if constraint.get("key") == "heal" else 0
    )  # characters that the prompt already shows
    try:
        while interrupts.signal is None and (line := run.step()) is not None:
            yield line
            text = "".join(json.loads(line)["output"]["pieces"])
            terminal.write(text[shown:])
            shown = max(0, shown - len(text))
    except terminal.ReaderGone:
        pass
    except UserError as failure:
        failures.append(failure)
    run.cancel()
    summary = run.summary()
    if not failures:
        _report(json.loads(summary), json.loads(header))
    yield summary


def _report(summary: dict, header: dict) -> None:
    rate = summary["tokens_per_second"] or 0
    accepted = summary["mean_accepted"] or 0
    terminal.say("")
    terminal.say(
        f"[{summary['new_tokens']} tokens in {summary['steps']} steps, "
        f"{accepted:.2f} a step, {rate:.0f} tokens/s, stop: {summary['stop']}]"
    )
    if law := header.get("constraint", {}).get("law"):
        from engine.core.bound import BEGUN

        contrast = "" if law == BEGUN else ", not the model's own law given a valid text"
        terminal.say(f"[exact: the law of {law}{contrast}]")
    if header["verifier"].get("up_to_rounding"):
        dtype = header["target"]["dtype"]
        terminal.say(
            f"[{dtype}: equal up to rounding; where two tokens are nearly as likely, another drafter may "
            "write another text]"
        )


if __name__ == "__main__":
    sys.exit(main())
