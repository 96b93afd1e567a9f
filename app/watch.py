"""The Watch tab: it shows one run step by step, as it happens."""

import gradio as gr

from app import watch_runs
from app.methods import Methods
from app.parts import (
    EVERY,
    QUICK,
    SLOW,
    engine_event,
    following,
    moved,
    name_whose,
    over,
    tell_controls,
)
from app.watch_controls import WatchControls
from app.watch_runs import TAB
from app.watch_states import WatchStates


class Watch(WatchControls):
    """The Watch tab: its components; ``wire`` attaches their events."""

    def wire(self, page: gr.Blocks, methods: Methods) -> None:
        """Attach the events. methods: the tab of method cards; each card shows its example here."""
        canvas_out = [self.view, self.said]
        states = WatchStates(self.presets, self.offer)
        advance = engine_event()
        runs = [
            self.run.click(watch_runs.start, [*self.fields, self.own.view], canvas_out, **advance),
            self.step.click(
                watch_runs.step, [self.said, *self.fields, self.own.view], canvas_out, **advance
            ),
            self.said.ask_resume(watch_runs.resume, None, canvas_out, **advance),
        ]
        self.own.wire(self.numbers[:3], runs)
        self.own.come_back(self.tools.returned)
        example = [self.look_for, self.preset]
        shows = [*canvas_out, *example]
        follow = self.recorded.chosen(states.of_record, None, shows, **following())
        runs.append(follow)
        for run in runs:
            run.then(None, js=over(TAB))
            run.failure(None, js=over(TAB))
        controls = [*shows, *self.fields, self.own.view]
        loaded = page.load(states.of_address, None, controls, **QUICK)
        brought = [
            loaded,
            self.tools.opened(states.of_file, None, controls, **SLOW),
            self.preset.chosen(states.of_example, self.preset, controls, **QUICK),
            methods.cards.chosen(states.of_example, methods.cards, controls, **QUICK),
            self.tools.moved(states.of_history, None, controls, **EVERY),
        ]
        brought[-1].then(None, js=moved(TAB))
        stopped = self.said.ask_stop(watch_runs.stop, None, canvas_out, **QUICK)
        for end in [*runs, stopped, *brought]:
            self.figures.follow(end)
        edits = [self.look_for.edited, self.pair.edited]
        numbers = [number.change for number in self.numbers]
        held = [control.change for control in (self.heal, self.json_schema, self.python_names)]
        named = [*edits, self.numbers[0].change, *held, self.models.change]
        # while these events set controls, some controls still hold old values
        shown = [end.then for end in (loaded, *brought[2:])]
        name_whose(TAB, [*named, *shown], [self.look_for, *self.fields], example)
        changes = [*edits, *numbers, *held, self.models.change, *(end.then for end in brought[1:])]
        tell_controls(TAB, loaded.then, changes, self.fields)
        self.said.ask_pause(watch_runs.pause, None, None, **QUICK)
        self.pair.forget(watch_runs.forget, None, None, **QUICK)
        self.tools.link(
            None, self.fields, None, js=f"(...v) => {{ DraftscopePage.link('{TAB}', v); }}"
        )
        self.model.wire(self.own.fold)
        self.prompt.submit(None, js="() => { document.getElementById('run').click(); }")
        self.figures.wire()
