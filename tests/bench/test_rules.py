"""The bench of rules: what it counts is what the rules are expected to keep of the same drafts."""

from engine.bench import rules_suite
from engine.bench.suite import Plan
from engine.methods import drafters
from engine.rules import verifiers
from presets import family
from presets.listed import prompts as workload
from tests.engine.family import trace_of


def test_a_small_bench(monkeypatch):
    """Given its tokens, rejection keeps of a chain what the meter says: of this pair more judgements are drawn, so that
    the two means come close."""
    plan, text = Plan(prompts=1, rounds=2, tokens=16), workload("story")[0]["prompt"]
    asked = family(), {"story": workload("story")[:1]}, True
    monkeypatch.setattr(rules_suite, "QUICK", plan)
    report = rules_suite.measure(*asked)
    found = {(row["drafter"], row["rule"]): row for row in report.data}
    here = [(key, rules) for key, _, rules in rules_suite.LINES if key in drafters()]
    assert [*found] == [(key, rule) for key, rules in here for rule in rules if rule in verifiers()]
    rates = []
    for seed in range(plan.rounds):
        options = {"length": 4}
        trace = trace_of(
            text,
            drafter="chain",
            options=options,
            verifier="rejection",
            temperature=1.0,
            seed=seed,
            max_new_tokens=16,
        )
        meters = [
            one["rows"][0][1] if one["title"].startswith("Expected accepted tokens") else 0
            for step in trace.steps
            for one in step["drafter"].get("exhibits", ())
        ]
        rates.append(1 + sum(meters) / len(trace.steps))
    monkeypatch.setattr(rules_suite, "JUDGED", 24)
    monkeypatch.setattr(rules_suite, "LINES", (("chain", {"length": 4}, ("rejection",)),))
    (rejection,) = rules_suite.measure(*asked).data
    assert abs(rejection["rate"] - sum(rates) / len(rates)) < 0.2
    assert rejection["error"] > 0 and rejection["gain"] is None
    assert all(row["gain_error"] > 0 for row in report.data if row["gain"] is not None)
