"""``engine prove``: a proof of exactness, or the smallest counterexample found, as readable text."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from engine.cli import terminal
from engine.errors import LISTED, UserError, unknown

EXACT, BIASED = 0, 1
DRAWING = ("chain", "rsd_s", "multi_chain")
"""Drafters with which the rules of a method in the user's own folder are proven, besides the method's own drafter."""


def declare(prove: argparse.ArgumentParser) -> None:
    prove.add_argument(
        "method", metavar="DIR | KEY", help="a method's folder, or a method of this engine"
    )
    prove.add_argument("--json", action="store_true", help="as JSON")
    prove.add_argument(
        "--seconds",
        type=float,
        default=100.0,
        help="of computing, after which no further case is begun",
    )
    prove.add_argument(
        "--rule",
        metavar="KEY",
        action="append",
        default=[],
        help="only with this rule; several times for several",
    )
    prove.set_defaults(action=_prove)


def _prove(arguments: argparse.Namespace) -> int:
    """Returns the exit code. 0: exact; 1: biased; 2, by UserError: the method cannot be used or proven."""
    try:
        return _proven(arguments)
    except (UserError, terminal.ReaderGone):
        raise
    except Exception as error:  # a stranger's code may raise anything, and must not seem biased
        reason = terminal.one_line(f"{type(error).__name__}: {error}")
        raise UserError(
            f"The method {terminal.one_line(arguments.method)} cannot be proven: {reason}."
        ) from error


def _proven(arguments: argparse.Namespace) -> int:
    from engine.methods import drafter, drafters
    from engine.proof.proving import prove
    from engine.rules import verifiers

    folder = Path(arguments.method)
    own_rules = []
    if folder.is_dir():
        cls, own_rules = _outside(folder)
    elif "/" in arguments.method or arguments.method not in drafters():
        raise UserError(f"There is no folder and no method {terminal.printable(arguments.method)}.")
    else:
        cls = drafter(arguments.method)
    own_keys = {rule.key for rule in own_rules}
    rules = [*own_rules, *(rule for rule in verifiers().values() if rule.key not in own_keys)]
    for key in arguments.rule:
        if key not in {rule.key for rule in rules}:
            raise unknown("rule", key, [rule.key for rule in rules], LISTED)
    rules = [rule for rule in rules if not arguments.rule or rule.key in arguments.rule]
    own_rules = [rule for rule in own_rules if rule in rules]
    tell = (lambda line: None) if arguments.json else terminal.say
    proofs = [prove(cls, rules, tell, arguments.seconds)]
    if own_rules:
        beside = [drafters()[key] for key in DRAWING if key in drafters()]
        proofs += [prove(drawer, own_rules, tell, arguments.seconds / 3) for drawer in beside]
    proofs = [proof for proof in proofs if proof.rules or proof.key == cls.key]
    exact = all(proof.exact for proof in proofs)
    if arguments.json:
        report = {
            "method": cls.key,
            "verdict": "exact" if exact else "biased",
            "proofs": [asdict(proof) for proof in proofs],
        }
        terminal.write(json.dumps(report, indent=1) + "\n")
    else:
        report = [line for proof in proofs for line in lines(proof)]
        wrong = [
            rule_proof.counterexample
            for proof in proofs
            for rule_proof in proof.rules
            if rule_proof.counterexample
        ]
        report += ["", *_counterexample(wrong[0])] if wrong else []
        terminal.write("".join(f"{line}\n" for line in report))
    return EXACT if exact else BIASED


def _outside(folder: Path):
    """The drafter and the rules of a method that is not part of this engine. folder: the method's folder. Raises
    UserError if the method's files cannot be used."""
    from engine.methods import own_drafters
    from engine.methods.guarded import outside_drafter
    from engine.parts.kinds import add_kind
    from engine.rules import outside_rules, own_rules

    folder = folder.resolve()
    if (folder / "part.py").is_file():
        add_kind(folder)
    rules = outside_rules(folder, own_rules()) if (folder / "rule.py").is_file() else []
    return outside_drafter(folder, own_drafters()), rules


def lines(proof) -> list[str]:
    """The report on the proof of one drafter, as lines."""
    if not proof.rules:
        kinds = ", ".join(proof.kinds)
        return [
            f"{proof.key}: biased, by its own words: no rule is exact for drafts of the kind {kinds}."
        ]
    wrong = [rule for rule in proof.rules if rule.counterexample]
    verdict = (
        "biased with " + ", ".join(rule.rule for rule in wrong)
        if wrong
        else "exact with these rules"
    )
    report = [f"{proof.key}: {verdict}"]
    for rule in proof.rules:
        cases = f"{rule.cases} cases"
        if rule.branches:
            cases += f", {rule.branches} branches, largest difference {rule.error:.1g}"
        if rule.left_out:
            cases += f"; {rule.left_out} larger cases left out"
        report.append(f"  {'✗' if rule.counterexample else '✓'} {rule.rule:14} {rule.how}: {cases}")
    return report


def _counterexample(example) -> list[str]:
    sampling = example.sampling
    cut = f", top-k {sampling.top_k}" if sampling.top_k else ""
    cut += f", top-p {sampling.top_p}" if sampling.top_p < 1 else ""
    report = [
        f"The smallest counterexample found, with the rule {example.rule}:",
        f"  vocabulary   {example.vocabulary} tokens, 0 to {example.vocabulary - 1}",
        f"  text so far  {_words(example.context)}",
        f"  sampling     temperature {sampling.temperature:g}{cut}"
        + (f", seed {sampling.seed}" if example.texts else ""),
        "  a draft      " + (_tree(example.tokens, example.parents) or "nothing"),
    ]
    if example.texts:
        at = len(example.after)
        report += [
            f"  expected     {_words(example.expected)}",
            f"  got          {_words(example.got)}   (token {at + 1} is the first that differs)",
        ]
        return report
    behind = f" behind {_words(example.after)}" if example.after else ""
    tokens = range(example.vocabulary)
    report += [
        f"  next token{behind}",
        "               " + "".join(f"{token:>9}" for token in tokens),
        "  expected     " + "".join(f"{example.expected[token]:9.4f}" for token in tokens),
        "  got          " + "".join(f"{example.got[token]:9.4f}" for token in tokens),
    ]
    return report


def _words(tokens) -> str:
    return " ".join(map(str, tokens))


def _tree(tokens, parents) -> str:
    """The tree as text: each drafted token, after its ancestors, as in ``1, 1-2, 0``."""
    paths: list[str] = []
    for token, parent in zip(tokens, parents, strict=True):
        paths.append(f"{paths[parent]}-{token}" if parent >= 0 else str(token))
    return ", ".join(paths)
