"""python -m engine.bench_gpu kernels|gpu [--json OUT] [--no-tune]"""

import argparse
import sys

from engine.errors import UserError


def main(arguments: list[str] | None = None) -> int:
    """Exit code 2, and one sentence on standard error, where there is no GPU."""
    parser = argparse.ArgumentParser(prog="python -m engine.bench_gpu", description=__doc__)
    parser.add_argument("suite", choices=("kernels", "gpu"))
    parser.add_argument("--json", metavar="OUT", help="write the numbers here")
    parser.add_argument("--no-tune", action="store_true", help="try no other plans")
    given = parser.parse_args(arguments)
    try:
        run_suite(given.suite, given.json, not given.no_tune)
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def run_suite(suite: str, json_path: str | None = None, tune: bool = True) -> dict:
    """What the command line calls; ``gpu`` takes the embedded family as its trained pair."""
    from engine.bench_gpu.gpu import run_gpu
    from engine.bench_gpu.kernels import run_kernels
    from engine.bench_gpu.timing import require_gpu

    require_gpu()
    if suite == "kernels":
        return run_kernels(json_path, tune)
    from presets import family, prompts

    texts = [card["prompt"] for kind in ("story", "code", "arithmetic") for card in prompts(kind)]
    return run_gpu(family(), texts[:50], json_path)


if __name__ == "__main__":
    sys.exit(main())
