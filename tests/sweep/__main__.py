"""The sweep: python -m tests.sweep [NAME ...] [--compiled] [--results FILE.jsonl] [--table FILE.md]

Without names: every causal architecture that the installed transformers knows, and some settings of them. What
stands in the results file is not run again. Exit code 1 if anything is neither equal, refused nor unbuildable.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import asdict
from functools import partial
from pathlib import Path

import torch
import transformers
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
from transformers.utils import logging as transformers_logging

from tests.sweep.comparing import Outcome, outcomes
from tests.sweep.table import table
from tests.sweep.tiny_configs import VARIANTS, config_of


def main(arguments: list[str] | None = None) -> int:
    given = _parser().parse_args(arguments)
    transformers_logging.set_verbosity_error()
    torch.set_num_threads(1)
    os.environ["DRAFTSCOPE_CACHE"] = tempfile.mkdtemp()  # empty, so that every check is made
    names = given.names or [*sorted(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES), *VARIANTS]
    known = _read(given.results)
    for name in names:
        if name not in known:
            make = partial(config_of, name)
            known[name] = outcomes(name, make, compiled=given.compiled)
            _append(given.results, name, known[name])
            print(name, *(f"{one.drafter or 'all'}: {one.kind}" for one in known[name]), flush=True)
    found = {name: known[name] for name in names}
    if given.table:
        given.table.write_text(table(found, transformers.__version__), "utf-8")
    bad = [name for name, seen in found.items() if not all(one.fine for one in seen)]
    print(f"{len(found)} swept, {len(bad)} wrong or ended in a traceback", *bad)
    return 1 if bad else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.sweep", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--compiled", action="store_true", help="with compiled passes (slow)")
    parser.add_argument("--results", type=Path, metavar="FILE.jsonl")
    parser.add_argument("--table", type=Path, metavar="FILE.md")
    return parser


def _read(path: Path | None) -> dict[str, list[Outcome]]:
    if path is None or not path.exists():
        return {}
    lines = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    return {line["name"]: [Outcome(**one) for one in line["outcomes"]] for line in lines}


def _append(path: Path | None, name: str, found: list[Outcome]) -> None:
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(
                json.dumps({"name": name, "outcomes": [asdict(one) for one in found]}) + "\n"
            )


if __name__ == "__main__":
    sys.exit(main())
