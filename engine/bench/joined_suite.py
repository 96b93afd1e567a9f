"""`python -m engine bench --suite joined`: would it pay to read several visitors' texts in one pass?

2, 4 and 8 texts are written greedily, to their ends. *turns*: one step of each text in turn, in passes
compiled for this CPU, as the page does. *joined*: ``engine.batch.together``, one pass per round over buffers
that lie side by side; such passes are not compiled. *at best*: the gain that compiled passes could reach if
joining texts itself cost nothing, from the cost of one text's pass over as many rows.
"""

from engine.bench.contestants import Ours, chain, plain
from engine.bench.report import Report, setting, table
from engine.bench.several_texts import Texts, in_turns, joined, side_by_side
from engine.bench.suite import Cards, in_turn
from engine.bench.verify_cost import verify_costs
from engine.parts.loading import ModelPaths, load_models

TEXTS, QUICK_TEXTS, ROUNDS = (2, 4, 8), (2, 4), 3
LENGTH = 4  # of the chain
TOKENS, WARM_UP = 96, 8


def measure(paths: ModelPaths, workloads: Cards, quick: bool) -> Report:
    """quick: fewer texts, once; else the fastest round counts. In a row: turns, joined: tokens per second of all texts
    together. equal: texts that both ways wrote alike. at_best: the best possible gain over ``turns``, as a factor, from
    the passes alone."""
    models = load_models(paths, chain().needs, "float32", "cpu")
    beside = side_by_side(paths, models.target)
    texts, rounds = (QUICK_TEXTS, 1) if quick else (TEXTS, ROUNDS)
    prompts = [
        models.target.tokenizer(text)["input_ids"] for text in in_turn(workloads)[: max(texts)]
    ]
    rows = []
    for contestant, size in (
        (Ours(plain(), models, options={}), 1),
        (Ours(chain(), models, options={"length": LENGTH, "stop_below": 0.0}), 1 + LENGTH),
    ):
        costs = verify_costs(models.target, (size - 1, *(size * count - 1 for count in texts)))
        for count in texts:

            def both(tokens: int, contestant=contestant, few=tuple(prompts[:count])) -> list[Texts]:
                ways = [
                    in_turns(contestant, few, tokens),
                    joined(contestant, beside, few, tokens),
                ]
                for way in ways:
                    way.go_on()
                return ways

            both(WARM_UP)
            runs = [both(TOKENS) for _ in range(rounds)]
            turns, together = (max(way.speed for way in ways) for ways in zip(*runs, strict=True))
            alone, beside_others = (way.tokens for way in runs[0])
            rows.append(
                {
                    "drafter": contestant.name,
                    "texts": count,
                    "turns": turns,
                    "joined": together,
                    "ratio": together / turns,
                    "equal": sum(map(list.__eq__, alone, beside_others)),
                    "at_best": count * costs[size - 1] / costs[size * count - 1],
                }
            )
    same, every = (sum(row[name] for row in rows) for name in ("equal", "texts"))
    columns = "drafter texts turns:.1f joined:.1f ratio:.2f at_best:.2f"
    text = f"tokens a second of all texts; {same} of {every} texts written alike"
    return Report(f"{table(rows, columns)}\n{text}", setting(models, rows=rows))
