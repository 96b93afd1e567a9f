"""A run as the page and the command line use it: a request goes in, the lines of a trace come out.

A run has three stages. A ``Plan`` is the caller's request, checked without opening a model. ``Opened`` is a plan with
its models, its prompt as tokens and its options settled. A ``Run`` yields the trace.
"""

from engine.progress import Tell, silent
from engine.run.opened import Opened
from engine.run.run import Run, begin
from engine.run.run_plan import MAX_NEW_TOKENS, Plan, RunRequest, rule_for

__all__ = ["MAX_NEW_TOKENS", "Opened", "Plan", "Run", "RunRequest", "begin", "open_run", "rule_for"]


def open_run(request: RunRequest, tell: Tell = silent) -> Run:
    """Check the request, load the models, and return a run that has not begun.

    tell: receives the progress of slow tasks. Raises UserError, one sentence, for a request that does not fit.
    """
    (run,) = begin([Opened.of(Plan.of(request), tell)])
    return run
