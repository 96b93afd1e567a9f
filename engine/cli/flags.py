"""The commands of the command line, their flags and their help."""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from engine.cli import bridge_commands, prove_command, terminal
from engine.errors import UserError
from engine.finding import suites

Action = Callable[[argparse.Namespace], int]

SUITE_NAMES = tuple(
    name for name in suites() if name != "openvino"
)  # that suite is --peer openvino


class _Parser(argparse.ArgumentParser):
    """An argparse parser whose errors are one line, like all other errors, and whose flags accept values that begin
    with dashes, such as ``--stop ---``, unless the value is itself a flag."""

    def parse_known_args(self, args=None, namespace=None):
        arguments = sys.argv[1:] if args is None else list(args)
        return super().parse_known_args(self._joined(arguments), namespace)

    def _get_values(self, action, arg_strings):
        """The value of a flag. argparse alone would lose a value that is just two dashes."""
        if action.option_strings and action.nargs is None and arg_strings == ["--"]:
            return self._get_value(action, "--")
        return super()._get_values(action, arg_strings)

    def _joined(self, arguments: list[str]) -> list[str]:
        """The arguments with each flag and a dashed value joined, as in ``--stop=---``, which argparse does not read as
        two flags."""
        flags, joined = self._option_string_actions, []
        for argument in arguments:
            before = flags.get(joined[-1]) if joined else None
            valued = before is not None and before.nargs is None
            if valued and argument.startswith("-") and argument.partition("=")[0] not in flags:
                joined[-1] += f"={argument}"
            else:
                joined.append(argument)
        return joined

    def error(self, message: str):
        raise UserError(f"{message[0].upper()}{message[1:]}. Try: {self.prog} --help")


def parser(
    listing: Action, run: Action, bench: Action, tune: Action, embedded_target: Callable[[], str]
) -> argparse.ArgumentParser:
    """The parser of all commands. The namespace that it returns has ``action``: the function to call.

    embedded_target: returns the folder of the target for which ``datastore`` writes unless another target is named.
    """
    parser = _Parser(prog="python -m engine", description="Draftscope's speculative engine.")
    commands = parser.add_subparsers(
        required=True,
        metavar="list | run | bench | tune | prove | export | import | inspect | datastore",
        parser_class=_Parser,
    )
    listed = commands.add_parser("list", help="drafters, verifiers, presets and methods")
    listed.add_argument("--json", action="store_true", help="as JSON")
    _add_methods(listed)
    listed.set_defaults(action=listing)
    _add_run(commands.add_parser("run", help="write a continuation, and its trace"), run)
    _add_bench(commands.add_parser("bench", help="this engine and its peers, side by side"), bench)
    tuning = commands.add_parser("tune", help="which drafter, how many tokens, and why")
    _add_tune(tuning, tune)
    prove = commands.add_parser("prove", help="show that a method is exact, or where it is not")
    prove_command.declare(prove)
    bridge_commands.declare(commands)
    datastore = commands.add_parser(
        "datastore", help="make a datastore of your text, in which drafts are looked up"
    )
    _add_datastore(datastore, embedded_target)
    return parser


def _add_methods(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--methods", metavar="DIR", help="a folder of further methods: your own code"
    )


def _add_weights(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--weights",
        choices=("stored", "unpacked"),
        help="on a CPU: read weights of 4 or 8 bits as they are, or as fp32; else what is faster",
    )


def _text(argument: str) -> str:
    """An argument as text, normalised like the text of a file."""
    return terminal.as_unicode(argument).replace("\r\n", "\n")


def _stop(argument: str) -> str:
    from engine.core.ending import typed

    return typed(_text(argument))


def _add_run(run: argparse.ArgumentParser, action: Action) -> None:
    add = run.add_argument
    add("--preset", metavar="NAME", help="prompt, drafter and models of a preset")
    add("--target", metavar="DIR", help="target model: a directory or hub name")
    add("--draft", metavar="DIR", help="draft model for it")
    add("--diffusion", metavar="DIR", help="diffusion drafter for it")
    add("--part", metavar="NAME=DIR", action="append", default=[], help="another part, by its role")
    add("--drafter", metavar="KEY", help="way of drafting (see list)")
    add("--option", metavar="NAME=VALUE", action="append", default=[], help="of the drafter")
    add("--verifier", metavar="KEY", help="acceptance rule (see list)")
    add("--rule-option", metavar="NAME=VALUE", action="append", default=[], help="of the rule")
    add("--prompt", metavar="TEXT", type=_text, help=r"taken as it is: \n is a backslash and an n")
    add("--prompt-file", metavar="FILE", help="a prompt of any length: UTF-8 text")
    add(
        "--picture",
        metavar="FILE",
        help="the picture or animation that the prompt is about, for captions",
    )
    add("--chat", action="store_true", help="the prompt is a user's turn, for a chat model")
    add(
        "--system",
        metavar="TEXT",
        type=_text,
        help="with --chat: what the conversation begins with",
    )
    add("--messages", metavar="FILE", help="a conversation: JSON, a list of role and content")
    add(
        "--stop",
        metavar="TEXT",
        type=_stop,
        action="append",
        default=[],
        help=r"ends the text, and stays in it; \n is a line break, \t a tab, \\ a backslash",
    )
    add("--own-sampling", action="store_true", help="sample as the model's generation config says")
    add("--max-new-tokens", type=int, metavar="N")
    add("--temperature", type=float, metavar="T")
    add("--top-k", type=int, default=0, metavar="K", help="0: off")
    add("--top-p", type=float, default=1.0, metavar="P", help="1: off")
    add("--seed", type=int, default=0, metavar="S")
    add("--dtype", metavar="D", help="float32 | bfloat16 | float16")
    add("--device", metavar="D")
    add("--json-schema", metavar="FILE", help="the text must follow this JSON schema")
    add("--python-names", action="store_true", help="names used in Python must exist in the text")
    add("--heal", action="store_true", help="the prompt may end in the middle of a token")
    add("--trace", metavar="OUT.ndjson", help="write the trace here")
    _add_weights(run)
    _add_methods(run)
    run.set_defaults(action=action)


def _add_bench(bench: argparse.ArgumentParser, action: Action) -> None:
    add = bench.add_argument
    add("--target", metavar="DIR", help="target model: a directory or hub name")
    add("--draft", metavar="DIR", help="draft model for it")
    add("--diffusion", metavar="DIR", help="diffusion drafter for it")
    add("--part", metavar="NAME=DIR", action="append", default=[], help="another part, by its role")
    add("--json", metavar="OUT", help="write the figures here")
    add("--quick", action="store_true", help="few prompts and schedules: under two minutes")
    add("--peer", choices=("transformers", "openvino"), default="transformers", help="beside whom")
    add(
        "--suite",
        choices=SUITE_NAMES,
        default="peers",
        help="drafts, gpu, kernels and pieces need a CUDA GPU",
    )
    _add_weights(bench)
    _add_methods(bench)
    bench.set_defaults(action=action, preset=None)


def _add_tune(tune: argparse.ArgumentParser, action: Action) -> None:
    add = tune.add_argument
    add("--target", metavar="DIR", help="target model: a directory or hub name")
    add("--draft", metavar="DIR", help="draft model for it")
    add("--diffusion", metavar="DIR", help="diffusion drafter for it")
    add("--part", metavar="NAME=DIR", action="append", default=[], help="another part, by its role")
    add(
        "--prompts",
        metavar="FILE",
        help="your prompts: JSONL, CSV, or a prompt a line; else our own",
    )
    add("--drafters", metavar="KEY,KEY", help="only these (see list)")
    add("--temperature", type=float, default=0.0, metavar="T")
    add("--top-k", type=int, default=0, metavar="K", help="0: off")
    add("--top-p", type=float, default=1.0, metavar="P", help="1: off")
    add("--seed", type=int, default=0, metavar="S")
    add("--new-tokens", type=int, default=64, metavar="N", help="written after each prompt")
    add("--record", metavar="FILE", help="keep what is measured; a tuning that was stopped goes on")
    add("--machine", metavar="NAME", action="append", default=[], help="an estimate for this GPU")
    add("--costs", metavar="ROWS:MS,...", help="an estimate for these passes of the target")
    add("--dtype", metavar="D", help="float32 | bfloat16 | float16")
    add("--device", metavar="D")
    add("--ray", metavar="ADDRESS", help="count on a Ray cluster; auto: one on this machine")
    add("--json", action="store_true", help="all lines as they come, as JSON")
    _add_weights(tune)
    _add_methods(tune)
    tune.set_defaults(action=action, preset=None)


def _add_datastore(parser: argparse.ArgumentParser, usual_target: Callable[[], str]) -> None:
    """Declare the arguments and the action of the command. usual_target: returns the target whose tokenizer is the
    default."""
    add = parser.add_argument
    add("text", metavar="TEXT", help="a UTF-8 text file")
    add(
        "--out",
        metavar="DIR",
        required=True,
        help="folder of the datastore, for run --part datastore=DIR",
    )
    add(
        "--target",
        metavar="DIR",
        help="the target whose tokenizer is used: a directory or hub name",
    )

    def make(arguments: argparse.Namespace) -> int:
        from engine.methods.shared.datastore_part import make_datastore

        target = arguments.target or usual_target()
        count = make_datastore(Path(arguments.text), Path(arguments.out), target)
        terminal.say(f"{count:,} tokens written to {arguments.out}")
        return 0

    parser.set_defaults(action=make)
