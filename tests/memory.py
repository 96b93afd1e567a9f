"""How much memory runs take beyond the bare process, per drafter: python -m tests.memory

Every drafter runs in a process of its own. Printed are the megabytes that the process has gained since the engine was
imported, all copies of the weights included, and how many times the target's fp32 weights that is. The models are the
embedded family, and with --large a Llama of random weights with 135 M parameters, for the drafters without parts.
--most: the command fails if a drafter of the large model takes more than so many times its weights.
"""

import argparse
import gc
import json
import subprocess
import sys
import tempfile
from pathlib import Path

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
"""Times the weights that the large model may take: with ``none``, and with any other drafter without parts."""
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


def measured(drafter: str, target: str | None, tokens: int) -> dict[str, float]:
    """Two runs of one drafter in this process."""
    from engine.fast.cpu.budget import graph_memory
    from engine.fast.cpu.freed_memory import give_back
    from engine.parts.loading import ModelPaths, load_models
    from engine.run import RunRequest, open_run
    from presets import family

    import_engine()
    before, _ = resident()
    paths = ModelPaths(target) if target else family()
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
    graphs = graph_memory()
    return {
        "mb": round(after - before),
        "most_mb": round(most - before),
        "times_the_weights": round((after - before) / weights, 2),
        "graphs": len(graphs),
        "graphs_mb": round(graphs.used / 1e6),
    }


def import_engine() -> None:
    """What any run needs, whatever the model: OpenVINO, and torch's threads."""
    import torch

    from engine.fast.cpu.core_count import threads
    from engine.fast.cpu.runtime import core

    core()
    threads()
    torch.ones(64, 64) @ torch.ones(64, 64)


def apart(drafter: str, target: str | None, tokens: int) -> dict[str, object]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "tests.memory", "--one", drafter, "--tokens", str(tokens)]
    command += ["--target", target] if target else []
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1:]}
    return json.loads(done.stdout.splitlines()[-1])


def chosen(names: str | None, large: bool) -> list[str]:
    """The drafters named, or all that have their parts."""
    from engine.methods import drafters
    from presets import family

    if names:
        return names.split(",")
    parts = set() if large else family().parts.keys()
    return [key for key, cls in drafters().items() if cls.needs.keys() <= parts]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.memory", description=__doc__)
    parser.add_argument("--drafters", help="separated by commas; all that have their parts")
    parser.add_argument("--tokens", type=int, default=48)
    parser.add_argument("--large", action="store_true")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--target", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measured(given.one, given.target, given.tokens)))
        return 0
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        if given.large:
            large_model(Path(folder))
        for drafter in chosen(given.drafters, given.large):
            found = apart(drafter, folder if given.large else None, given.tokens)
            most = PLAIN if drafter == "none" else OTHERS
            if given.large and found.get("times_the_weights", 0) > most:
                failed, found["too_much"] = 1, most
            print(drafter, json.dumps(found), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
