"""How much memory runs take beyond the bare process, per drafter: python -m tests.memory

Every drafter runs in a process of its own. Printed are the megabytes that the process has gained since the engine was
imported, all copies of the weights included, and how many times the target's fp32 weights that is, the numbers of its
parts aside. The models are the embedded family; with --real the real chat model, if it was fetched, and its parts; with --large a Llama of random weights
of the same size, for the drafters without parts. ``at_most`` is the limit on a model that large, PLAIN or OTHERS times the
weights; the command fails if a drafter without parts goes beyond.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING

from presets.fetched import missing_target

if TYPE_CHECKING:
    from engine.parts.loading import ModelPaths

LARGE = {
    "hidden_size": 576,
    "intermediate_size": 1536,
    "num_hidden_layers": 30,
    "num_attention_heads": 9,
    "num_key_value_heads": 3,
    "vocab_size": 49_152,
    "tie_word_embeddings": True,
    "max_position_embeddings": 8192,
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
}
PLAIN, OTHERS = 2.2, 3.0
"""Times the weights that a large model may take: with ``none``, and with any other drafter without parts."""
REAL = "smollm2"
PROMPT = "Once upon a time there was a little dog. The little dog"


def large_model(folder: Path) -> None:
    """Write a Llama with the shape of SmolLM2-135M, and the embedded family's tokenizer."""
    import torch
    from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

    from presets import family

    torch.manual_seed(0)
    LlamaForCausalLM(LlamaConfig(**LARGE)).save_pretrained(folder)
    AutoTokenizer.from_pretrained(family().target).save_pretrained(folder)


def resident() -> tuple[float, float]:
    """Megabytes of this process in memory, now and at most so far."""
    lines = Path("/proc/self/status").read_text("ascii").splitlines()
    numbers = {line.split(":")[0]: line.split()[1] for line in lines if line.startswith("Vm")}
    return int(numbers["VmRSS"]) / 1000, int(numbers["VmHWM"]) / 1000


def measured(drafter: str, target: str, tokens: int) -> dict[str, float]:
    """Two runs of one drafter in this process. target: the name of a family, or a folder."""
    from engine.fast.cpu.budget import graph_memory
    from engine.fast.cpu.freed_memory import give_back
    from engine.parts.loading import ModelPaths, load_models
    from engine.run import RunRequest, open_run
    from presets import families, family

    import_engine()
    before, _ = resident()
    paths = family(target) if target in families() else ModelPaths(target)
    for temperature in (0.0, 0.8):
        wanted = RunRequest(
            PROMPT, paths, drafter=drafter, temperature=temperature, max_new_tokens=tokens
        )
        for _ in open_run(wanted).steps():
            pass
    gc.collect()
    give_back()
    after, most = resident()
    weights = 4 * load_models(paths, {}).target.parameters / 1e6
    parts = parts_megabytes(paths, drafter)
    graphs = graph_memory()
    return {
        "mb": round(after - before),
        "most_mb": round(most - before),
        "parts_mb": round(parts),
        "times_the_weights": round((after - before - parts) / weights, 2),
        "graphs": len(graphs),
        "graphs_mb": round(graphs.used / 1e6),
    }


def parts_megabytes(paths: "ModelPaths", drafter: str) -> float:
    """Megabytes of the numbers of the parts that a drafter needs, as fp32."""
    from engine.methods import drafters
    from engine.parts.stored_file import entries, weights_in

    files = (file for role in drafters()[drafter].needs for file in weights_in(paths.parts[role]))
    shapes = (shape for file in files for shape, _ in entries(file).values())
    return sum(4 * prod(shape) for shape in shapes) / 1e6


def import_engine() -> None:
    """What any run needs, whatever the model: OpenVINO, and torch's threads."""
    import torch

    from engine.fast.cpu.core_count import threads
    from engine.fast.cpu.runtime import core

    core()
    threads()
    torch.ones(64, 64) @ torch.ones(64, 64)


def apart(drafter: str, target: str, tokens: int) -> dict[str, object]:
    """Measure one drafter, as ``measured`` does, in a process of its own."""
    command = [sys.executable, "-m", "tests.memory", "--one", drafter, "--tokens", str(tokens)]
    command += ["--target", target]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])


def chosen(names: str | None, target: str) -> list[str]:
    """The drafters named, or all that have their parts beside this target."""
    from engine.methods import drafters
    from presets import families, family

    if names:
        return names.split(",")
    parts = family(target).parts.keys() if target in families() else set()
    return [key for key, cls in drafters().items() if cls.needs.keys() <= parts]


def limit(drafter: str) -> float | None:
    """How many times the weights of a large model a drafter may take; None for one with parts."""
    from engine.methods import drafters

    if drafters()[drafter].needs:
        return None
    return PLAIN if drafter == "none" else OTHERS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.memory", description=__doc__)
    parser.add_argument("--drafters", help="separated by commas; all that have their parts")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--real", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--target", default="", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.one, given.target, given.tokens)))
        return 0
    if given.real and missing_target(REAL) is not None:
        parser.error("the real chat model is not here; `make real` fetches it")
    failed = False
    with tempfile.TemporaryDirectory() as folder:
        target = folder if given.large else REAL if given.real else ""
        if given.large:
            large_model(Path(folder))
        for drafter in chosen(given.drafters, target):
            found = apart(drafter, target, given.tokens)
            most = limit(drafter) if target else None
            if most is not None:
                found["at_most"] = most
                failed |= found.get("times_the_weights", 0) > most
            print(drafter, json.dumps(found), flush=True)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
