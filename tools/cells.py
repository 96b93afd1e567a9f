"""Makes a lesson's directives and text into cells of a notebook."""

import re
import tomllib
from collections.abc import Callable, Mapping

from markdown_it.tree import SyntaxTreeNode

from presets.lessons.directives import read
from presets.lessons.numbers import number

NUMBER = re.compile(r"`=([^`]+)`")
LINK = re.compile(r"\]\((lesson|method|watch|compare):([\w-]+)\)")
WHERE = {
    "lesson": "?tab=learn&lesson={}",
    "method": "?tab=methods",
    "watch": "?preset={}",
    "compare": "?tab=compare&preset={}",
}
"""Beginning of a link in a lesson -> address on the page."""

Cell = dict


def markdown(text: str) -> Cell:
    return {"cell_type": "markdown", "metadata": {}, "source": text.strip()}


def code(text: str, *tags: str) -> Cell:
    settings = {"tags": list(tags)} if tags else {}
    ran = {"execution_count": None, "outputs": []}
    return {"cell_type": "code", "metadata": settings, "source": text.strip(), **ran}


def written(text: str, page: str) -> str:
    """Return a lesson's markdown with its numbers filled in, and with links that lead to the page. Raises UserError."""
    text = NUMBER.sub(lambda found: number(found[1])["number"], text)
    return LINK.sub(lambda found: f"]({page}{WHERE[found[1]].format(found[2])})", text)


def cells_of(block: SyntaxTreeNode, page: str, here: str) -> list[Cell]:
    """Return the cells of a directive. page: the address of the page. here: the address of the directive's screen.
    Raises UserError."""
    directive = read(block.info, block.content)
    own = {
        **directive,
        **{name: _given(block, name) for name in ("caption", "ask", "then", "text")},
    }
    own["asked"] = _given(block, "step") or "first draft"
    own["choices"] = [written(choice, page) for choice in _given(block, "choices") or []]
    for name in ("caption", "ask", "then", "text"):
        own[name] = written(own[name] or "", page)
    return CELLS[directive["kind"]](own, here)


def _given(block: SyntaxTreeNode, name: str):
    """Return a field of a directive as its author wrote it, or None."""
    return tomllib.loads(block.content).get(name)


def _caption(told: Mapping, here: str, more: str = "") -> list[Cell]:
    words = [told["caption"], more, f"[The same on the page]({here})."]
    return [markdown(" ".join(filter(None, words)))]


def _trace(told: Mapping, here: str) -> list[Cell]:
    named = isinstance(told["asked"], str)  # a step is named by its number, or by the moment in it
    at = f'moment("{told["asked"]}", trace)[0]' if named else str(told["step"])
    lines = [
        f'trace = finished("{told["example"]}")[""]',
        f"step_figure(trace.steps[{at}]).show()",
    ]
    if "timeline" in told["parts"]:
        lines.append('run_figures(trace)["accepted"].show()')
    if "text" in told["parts"]:
        lines.append('print(trace.run["prompt"]["text"] + trace.summary["text"])')
    shown = (
        "The page shows, too, what the method itself did in this step."
        if "method" in told["parts"]
        else ""
    )
    return [*_caption(told, here, shown), code("\n".join(lines))]


def _race(told: Mapping, here: str) -> list[Cell]:
    body = f'for drawn in race_figures(finished("{told["example"]}")).values():\n    drawn.show()'
    return [*_caption(told, here, "The race itself runs on the page."), code(body)]


def _live(told: Mapping, here: str) -> list[Cell]:
    lines = [
        f'request = request_of(examples()["{told["example"]}"])',
        f"request = replace(request, options={{**request.options, **{told['options']!r}}})",
        *(f"request = replace(request, {name}={value!r})" for name, value in told["start"].items()),
        "run = open_run(request)",
        'trace = read_trace("".join([run.header(), *run.steps(), run.summary()]))',
        'print(trace.run["prompt"]["text"] + trace.summary["text"])',
        "print(f\"{trace.summary['mean_accepted']:.2f} tokens a step\")",
        'run_figures(trace)["accepted"].show()',
    ]
    words = "A run of your own: change what stands in the cell, and run it. It takes some seconds."
    return [
        *_caption({**told, "caption": told["caption"] or words}, here),
        code("\n".join(lines), "live"),
    ]


def _rule(told: Mapping, here: str) -> list[Cell]:
    broken = len(told["rules"]) > 1
    more = "The broken rules are tried on the page." if broken else ""
    body = f"words, p, q = {told['words']}, {told['p']}, {told['q']}\ncounts, kept = toss(p, q, 2000)\n"
    body += 'print(f"{kept / sum(counts):.2f} of the guesses were kept")\nrule_figure(words, p, q, counts).show()'
    return [*_caption(told, here, more), code(body)]


def _length(told: Mapping, here: str) -> list[Cell]:
    plain = f'finished("{told["plain"]}")[""]' if "plain" in told else 'lanes["none"]'
    body = f'lanes = finished("{told["example"]}")\nstart = prices(lanes["{told.get("lane", "")}"], {plain})\n'
    body += f'length_figure(start["alpha"], start["cost"], {told["longest"]}).show()'
    return [*_caption(told, here, "Change α and c, and run the cell again."), code(body)]


def _passes(told: Mapping, here: str) -> list[Cell]:
    return [
        *_caption(told, here),
        code(f"passes_figure(**passes({tuple(told['races'])!r})).show()"),
    ]


def _experts(told: Mapping, here: str) -> list[Cell]:
    body = 'from presets.lessons.expert_passes import expert_passes\n\nexperts_figure(expert_passes()["targets"]).show()'
    return [*_caption(told, here, "The page shows the experts of every row."), code(body)]


def _figure(told: Mapping, here: str) -> list[Cell]:
    lines = [
        "from presets import cards",
        f'for shown in cards()["{told["method"]}"].figure:',
        '    print(shown["title"], *(shown.get(name) for name in ("rows", "columns", "values", "series")), sep="\\n")',
    ]
    return [*_caption(told, here, "The page draws these numbers."), code("\n".join(lines))]


WAIT = {
    "run": "Your own run below decides.",
    "instrument": "The figure below helps; the [instrument of the page]({here}) decides.",
}


def _predict(told: Mapping, here: str) -> list[Cell]:
    how = "\n".join(f"{place}. {choice}" for place, choice in enumerate(told["choices"], 1))
    if "slider" in told:
        low, high, unit = (told["slider"].get(part, "") for part in ("low", "high", "unit"))
        how = f"A number from {low} to {high}{f' {unit}' if unit else ''}."
    ask = markdown(f"**Predict.** {told['ask']}\n\n{how}")
    then = markdown(f"<details><summary>And then</summary>\n\n{told['then']}\n\n</details>")
    judge = told.get("judge")
    if judge:
        return [markdown(f"{ask['source']}\n\n{WAIT[judge].format(here=here)}"), then]
    return [ask, code(_answer(told)), then]


def _answer(told: Mapping) -> str:
    """Return the code that computes the right answer from the finished run."""
    example = f'"{told["example"]}"'
    if "slider" in told:
        return f'figure("{told["answer"]}", {example})'
    if "lanes" in told:
        least = "least" in told
        measure = told["least"] if least else told["most"]
        best = "min" if least else "max"
        return f'lanes = {told["lanes"]}\n1 + lanes.index({best}(lanes, key=lambda lane: figure(f"{{lane}}.{measure}", {example})))'
    return f"right = {told['right']}\n1 + [holds(one, {example}) for one in right].index(True)"


def _claim(told: Mapping, _: str) -> list[Cell]:
    conditions = [condition["condition"] for condition in told["holds"]]
    body = f'for condition in {conditions}:\n    print(held(condition, "{told["example"]}"))'
    return [markdown(f"**Claim.** {told['text']}"), code(body)]


CELLS: dict[str, Callable[[Mapping, str], list[Cell]]] = {
    "trace": _trace,
    "race": _race,
    "live": _live,
    "rule": _rule,
    "length": _length,
    "passes": _passes,
    "experts": _experts,
    "figure": _figure,
    "predict": _predict,
    "claim": _claim,
}
"""Name of a directive -> function that makes its cells. A feature without a counterpart in Python becomes a sentence
with a link to the page."""
