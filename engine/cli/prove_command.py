"""``engine prove``: a proof of exactness, or the smallest counterexample found, as text that one can read."""

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from engine.cli import terminal
from engine.errors import LISTED, UserError, unknown

EXACT, BIASED = 0, 1
DRAWING = ("chain", "rsd_s", "multi_chain")
"""Drafters whose proposals a rule of one's own is proven with, beside one's own drafter."""


def declare(prove: argparse.ArgumentParser) -> None:
    prove.add_argument(
        "method", metavar="DIR | KEY", help="a method's folder, or a method of this engine"
    )
    prove.add_argument("--json", action="store_true", help="as JSON")
    prove.add_argument(
        "--seconds", type=float, default=100.0, help="after which no further case is begun"
    )
    prove.add_argument(
        "--rule",
        metavar="KEY",
        action="append",
        default=[],
        help="only with this rule; several times for several",
    )
    prove.set_defaults(action=_prove)


def _prove(given: argparse.Namespace) -> int:
    """Exit code 0: exact; 1: biased; 2, by UserError: it cannot be used or proven."""
    try:
        return _proven(given)
    except (UserError, terminal.ReaderGone):
        raise
    except Exception as error:  # a stranger's code may raise anything, and must not seem biased
        told = terminal.one_line(f"{type(error).__name__}: {error}")
        raise UserError(
            f"The method {terminal.one_line(given.method)} cannot be proven: {told}."
        ) from error


def _proven(given: argparse.Namespace) -> int:
    from engine.methods import drafter, drafters
    from engine.proof.proving import prove
    from engine.rules import verifiers

    folder = Path(given.method)
    own_rules = []
    if folder.is_dir():
        cls, own_rules = _outside(folder)
    elif "/" in given.method or given.method not in drafters():
        raise UserError(f"There is no folder and no method {terminal.printable(given.method)}.")
    else:
        cls = drafter(given.method)
    taken = {one.key for one in own_rules}
    rules = [*own_rules, *(rule for rule in verifiers().values() if rule.key not in taken)]
    for key in given.rule:
        if key not in {one.key for one in rules}:
            raise unknown("rule", key, [one.key for one in rules], LISTED)
    rules = [one for one in rules if not given.rule or one.key in given.rule]
    own_rules = [one for one in own_rules if one in rules]
    tell = (lambda line: None) if given.json else terminal.say
    proofs = [prove(cls, rules, tell, given.seconds)]
    if own_rules:
        proofs += [prove(drafter(key), own_rules, tell, given.seconds / 3) for key in DRAWING]
    proofs = [one for one in proofs if one.rules or one.key == cls.key]
    exact = all(one.exact for one in proofs)
    if given.json:
        told = {
            "method": cls.key,
            "verdict": "exact" if exact else "biased",
            "proofs": [asdict(one) for one in proofs],
        }
        terminal.write(json.dumps(told, indent=1) + "\n")
    else:
        told = [line for one in proofs for line in lines(one)]
        wrong = [each.counterexample for one in proofs for each in one.rules if each.counterexample]
        told += ["", *_counterexample(wrong[0])] if wrong else []
        terminal.write("".join(f"{line}\n" for line in told))
    return EXACT if exact else BIASED


def _outside(folder: Path):
    """The drafter and the rules of a folder. Raises UserError."""
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
    """The proof of one drafter, line by line."""
    if not proof.rules:
        kinds = ", ".join(proof.kinds)
        return [
            f"{proof.key}: biased, by its own words: no rule is exact for drafts of the kind {kinds}."
        ]
    wrong = [one for one in proof.rules if one.counterexample]
    verdict = (
        "biased with " + ", ".join(one.rule for one in wrong) if wrong else "exact with these rules"
    )
    told = [f"{proof.key}: {verdict}"]
    for one in proof.rules:
        cases = f"{one.cases} cases"
        if one.branches:
            cases += f", {one.branches} branches, largest difference {one.error:.1g}"
        if one.left_out:
            cases += f"; {one.left_out} larger cases left out"
        told.append(f"  {'✗' if one.counterexample else '✓'} {one.rule:14} {one.how}: {cases}")
    return told


def _counterexample(found) -> list[str]:
    sampling = found.sampling
    cut = f", top-k {sampling.top_k}" if sampling.top_k else ""
    cut += f", top-p {sampling.top_p}" if sampling.top_p < 1 else ""
    told = [
        f"The smallest counterexample found, with the rule {found.rule}:",
        f"  vocabulary   {found.vocabulary} tokens, 0 to {found.vocabulary - 1}",
        f"  text so far  {_words(found.context)}",
        f"  sampling     temperature {sampling.temperature:g}{cut}"
        + (f", seed {sampling.seed}" if found.texts else ""),
        "  a draft      " + (_tree(found.tokens, found.parents) or "nothing"),
    ]
    if found.texts:
        at = len(found.after)
        told += [
            f"  expected     {_words(found.expected)}",
            f"  got          {_words(found.got)}   (token {at + 1} is the first that differs)",
        ]
        return told
    behind = f" behind {_words(found.after)}" if found.after else ""
    tokens = range(found.vocabulary)
    told += [
        f"  next token{behind}",
        "               " + "".join(f"{token:>9}" for token in tokens),
        "  expected     " + "".join(f"{found.expected[token]:9.4f}" for token in tokens),
        "  got          " + "".join(f"{found.got[token]:9.4f}" for token in tokens),
    ]
    return told


def _words(tokens) -> str:
    return " ".join(map(str, tokens))


def _tree(tokens, parents) -> str:
    """Each drafted token behind its parents: ``1, 1-2, 0``."""
    paths: list[str] = []
    for token, parent in zip(tokens, parents, strict=True):
        paths.append(f"{paths[parent]}-{token}" if parent >= 0 else str(token))
    return ", ".join(paths)
