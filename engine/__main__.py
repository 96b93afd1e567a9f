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
    """Returns the exit code: 0; 2 for a mistake of the user's, which one line on standard error
    explains; 128 plus the number of the signal that ended the run."""
    terminal.speak_unicode()
    try:
        given = parser(_list, _run, _bench, _tune, _embedded_target).parse_args(arguments)
        if getattr(given, "methods", None) is not None:
            os.environ[OUTSIDE] = given.methods  # read when methods are first looked for
        if getattr(given, "weights", None) is not None:
            from engine.fast.cpu.stored_products import SETTING

            os.environ[SETTING] = given.weights  # read when the first model is compiled
        return given.action(given)
    except UserError as error:
        terminal.say(f"error: {error}")
        return 2
    except terminal.ReaderGone:
        return 0
    except KeyboardInterrupt:
        terminal.say("cancelled")
        return 128 + 2


def _list(given: argparse.Namespace) -> int:
    from engine.catalogue import catalogue
    from engine.methods import unusable
    from presets import methods, models, outside_cards, presets

    found = catalogue([card.to_dict() for card in presets()], methods(), models())
    if given.json:
        terminal.write(json.dumps(found, ensure_ascii=False, indent=1) + "\n")
        return 0
    rows = []
    for drafter in found["drafters"]:
        exact = "exact" if drafter["lossless"] else "other" if drafter["law"] else "lossy"
        rows.append(f"{drafter['key']:14} {drafter['family']:10} {exact:6} {drafter['summary']}")
    for rule in found["verifiers"]:
        rows.append(f"{rule['key']:14} {'verifier':10} {rule['kind']:6} {rule['summary']}")
    for family in found["models"]:
        here = "here" if family["here"] else "make real"
        rows.append(f"{family['name'] or 'embedded':18} {'models':10} {here:14} {family['title']}")
    for card in found["presets"]:
        rows.append(f"{card['name']:18} {'preset':10} {card['drafter']:14} {card['title']}")
    terminal.write("".join(f"{row}\n" for row in rows))
    for sentence in unusable().values():
        terminal.say(f"left out: {sentence}")
    for sentence in outside_cards()[1].values():
        terminal.say(sentence)
    return 0


def _run(given: argparse.Namespace) -> int:
    from engine.run import open_run
    from engine.trace import Outlet

    outlet = None if given.trace is None else Outlet(given.trace)
    bar = terminal.Bar()
    try:
        run = open_run(_request(given), tell=bar)
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
    return 0 if interrupts.asked is None else 128 + interrupts.asked


def _bench(given: argparse.Namespace) -> int:
    from engine.bench.suites import run_suite
    from engine.serving.engine_address import is_served
    from presets import KINDS, TURNS, prompts

    if is_served(given.target or ""):
        raise UserError("A bench measures models of this machine, not one behind an engine.")
    workloads = {kind: prompts(kind) for kind in (TURNS if given.suite == "real" else KINDS)}
    beside_openvino = given.suite == "peers" and given.peer == "openvino"
    suite = "openvino" if beside_openvino else given.suite
    own = {"pictures": "image", "real": "smollm2"}.get(suite) if given.target is None else None
    models = _models(given) if own is None else _family(own, given)
    run_suite(suite, models, workloads, given.quick, given.json)
    return 0


def _tune(given: argparse.Namespace) -> int:
    from engine.cli.tune_command import tune
    from presets.tuning import machine_named, usual_prompts

    models = _models(given)
    return tune(given, models, lambda: usual_prompts(models.family), machine_named)


def _embedded_target() -> str:
    from presets import family

    return family().target


def _request(given: argparse.Namespace):
    from engine.run import RunRequest
    from presets import preset

    card = preset(given.preset) if given.preset else None
    fields = {name: getattr(given, name) for name in ("top_k", "top_p", "seed", "dtype", "device")}
    for name in ("drafter", "verifier", "max_new_tokens", "temperature"):
        if getattr(given, name) is not None:
            fields[name] = getattr(given, name)
        elif card is not None:
            fields[name] = getattr(card, name)
    same_drafter = card is not None and fields["drafter"] == card.drafter
    options = (dict(card.options) if same_drafter else {}) | _options(given.option)
    same_rule = card is not None and fields.get("verifier") == card.verifier
    rule_options = (dict(card.rule_options) if same_rule else {}) | _options(given.rule_option)
    schema = None if given.json_schema is None else text_of(Path(given.json_schema))
    return RunRequest(
        prompt="" if given.messages else _with_picture(given, _prompt(given, card)),
        messages=_messages(given, card),
        stop=given.stop,
        own_sampling=given.own_sampling,
        models=_models(given),
        options=options,
        rule_options=rule_options,
        recorded=given.trace is not None,
        json_schema=card.json_schema if schema is None and card else schema,
        python_names=given.python_names or (card is not None and card.python_names),
        heal=given.heal or (card is not None and card.heal),
        **fields,
    )


def _models(given: argparse.Namespace):
    from engine.parts.loading import ModelPaths
    from engine.parts.mtp_fields import own_layer
    from presets import families, preset
    from presets.fetched import sources

    if given.target is None:
        name = preset(given.preset).models if getattr(given, "preset", None) else ""
    elif given.preset is not None:
        raise UserError("Give --preset or --target, not both.")
    elif given.target in {*families(), *sources()} and not Path(given.target).is_dir():
        name = given.target
    else:
        return ModelPaths(given.target, own_layer(given.target)).with_parts(_parts(given))
    return _family(name, given)


def _family(name: str, given: argparse.Namespace):
    """This family with the parts that the flags name. Raises UserError where its target has yet to be fetched."""
    from presets import family
    from presets.fetched import check_there

    found = family(name).with_parts(_parts(given))
    check_there(name)
    return found


def _parts(given: argparse.Namespace) -> dict[str, str | None]:
    """Role -> folder, from --part NAME=DIR and the two that have flags of their own."""
    named = {"draft": given.draft, "diffusion": given.diffusion}
    return named | _options(given.part, "A part")


def _prompt(given: argparse.Namespace, card) -> str:
    if given.prompt is not None and given.prompt_file is not None:
        raise UserError("Give --prompt or --prompt-file, not both.")
    if given.prompt is not None:
        return given.prompt
    if given.prompt_file is not None:
        return text_of(Path(given.prompt_file))
    if card is not None:
        return card.prompt
    raise UserError("Give a prompt: --prompt TEXT, --prompt-file FILE or --preset NAME.")


def _with_picture(given: argparse.Namespace, words: str) -> str:
    """The prompt with the picture of --picture, made as small as models here see it."""
    from engine.scenes.brought import read, small
    from engine.scenes.prompt_picture import joined

    return words if given.picture is None else joined(words, small(read(Path(given.picture))))


def _messages(given: argparse.Namespace, card) -> list[dict] | None:
    """The conversation; None if the prompt is not a turn of one."""
    from presets.families import converses

    if given.messages is None:
        chat = given.chat or (card is not None and converses(card.models))
        if given.system is not None and not chat:
            raise UserError("--system belongs to --chat.")
        turns = [] if given.system is None else [{"role": "system", "content": given.system}]
        return [*turns, {"role": "user", "content": _prompt(given, card)}] if chat else None
    if given.chat or given.prompt is not None or given.prompt_file is not None:
        raise UserError("Give --messages or a prompt, not both.")
    try:
        return json.loads(text_of(Path(given.messages)))
    except (ValueError, RecursionError):
        raise UserError(f"{Path(given.messages).name} is not valid JSON.") from None


def _options(pairs: list[str], thing: str = "An option") -> dict[str, str]:
    options = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise UserError(f"{thing} is given as name=value, not {pair!r}.")
        options[name] = value
    return options


def _show(run, interrupts: terminal.Interrupts, failures: list[UserError]) -> Iterator[str]:
    """Pass the trace's lines on, and write the text to the terminal as it comes.

    If the process is asked to stop, or nobody reads the text any more, the run is cancelled
    between two steps; the trace still gets its summary. So it does if the run fails; the failure is added to
    ``failures``.
    """
    header = run.header()
    yield header
    told = json.loads(header).get("constraint", {})
    shown = len(told["text"]) if told.get("key") == "heal" else 0  # characters that the prompt has
    try:
        while interrupts.asked is None and (line := run.step()) is not None:
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

        other = "" if law == BEGUN else ", not the model's own law given a valid text"
        terminal.say(f"[exact: the law of {law}{other}]")
    if header["verifier"].get("up_to_rounding"):
        dtype = header["target"]["dtype"]
        terminal.say(
            f"[{dtype}: equal up to rounding; where two tokens are nearly as likely, another drafter may "
            "write another text]"
        )


if __name__ == "__main__":
    sys.exit(main())
