"""A grammar lives in a process of its own: it cannot fill, block or bring down this one."""

import gc
import json
import os
import resource
import subprocess
import sys
import threading
import time
import weakref
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from engine.chat import grammar, grammar_process
from engine.chat.grammar import Bounds, GrammarText, GrammarTokenizer, Refused, TooMuch
from engine.chat.json_schema import JsonSchema
from engine.chat.wanted import CLIENT, WANTED, Unwanted
from engine.errors import UserError
from tests.engine.family import embedded_tokenizer

TOKENIZER = embedded_tokenizer()
SIZE, END = len(TOKENIZER), TOKENIZER.eos_token_id
BOUNDS = Bounds(making=0.5, masking=0.2, megabytes=48)


def patterns(count: int, around: str) -> dict:
    """Return a schema whose texts match many patterns at once. Each pattern doubles the states of its grammar."""
    one = [{"type": "string", "pattern": around.format(number)} for number in range(10, 10 + count)]
    return {"allOf": one}


HOSTILE = {
    "patterns": patterns(16, ".*{0}.*"),
    "patterns without end": patterns(40, "(.*{0}.*){{1,9}}"),
    "patterns behind a prefix": {
        "type": "object",
        "properties": {"a": {"const": "x"}, "b": patterns(16, ".*{0}.*")},
        "required": ["a", "b"],
    },
}


def of_embedded(bounds: Bounds = BOUNDS) -> GrammarTokenizer:
    return GrammarTokenizer(TOKENIZER.backend_tokenizer.to_str(), SIZE, SIZE, END, bounds)


@pytest.fixture(scope="module")
def tokenizer():
    return of_embedded()


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_grammar_beyond_its_bounds_is_refused_and_the_next_one_works(tokenizer, kind):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(2):  # the second time, the refusal is remembered
        with pytest.raises(Refused):
            GrammarText(tokenizer, json.dumps(HOSTILE[kind]), None).after(())
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000  # kB
    assert GrammarText(tokenizer, '{"type": "boolean"}', None).after(()).mask


def test_the_sentence_for_such_a_grammar():
    with pytest.raises(
        UserError, match=r"^The JSON schema is too complex: .* 3 seconds or 64 MB.*\.$"
    ):
        JsonSchema(json.dumps(HOSTILE["patterns"]), TOKENIZER, SIZE, {END})


def test_a_text_whose_masks_cost_too_much_ends():
    few = of_embedded(Bounds(text=0.0, token=0.0))
    text = GrammarText(few, '{"type": "string"}', None)
    text.after(())  # to make the grammar is not counted
    with pytest.raises(TooMuch):
        for _ in range(
            20_000
        ):  # some systems count the time of a process in hundredths of a second
            text.after(())


def test_a_text_that_goes_on_waits_for_none_that_begins(monkeypatch):
    """Even if more grammars are asked for that take long to make than there may be processes."""
    processes = 4
    monkeypatch.setattr(grammar, "_pool", grammar.Pool(processes))
    one = of_embedded(Bounds(making=0.4))
    text = GrammarText(one, '{"type": "string"}', None)
    text.after(())
    ended = []

    def begin(number: int) -> None:
        schema = HOSTILE["patterns"] | {"title": str(number)}
        with pytest.raises(Refused):
            GrammarText(one, json.dumps(schema), None).after(())
        ended.append(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(processes + 2)]
    for thread in threads:
        thread.start()
    while len(grammar._pool._line) < len(threads) and not ended:
        time.sleep(0.001)
    text.after(())
    assert not ended
    for thread in threads:
        thread.join()


LOWEST = 19  # priority that Linux knows: these tests may themselves run behind others
linux = pytest.mark.skipif(
    sys.platform != "linux",
    reason="elsewhere a priority is a process's, and no file lists a process's own",
)


@linux
def test_what_runs_behind_others_leaves_the_priority_of_its_process_alone():
    before = os.nice(0)
    expected = min(before + grammar_process.NICE, LOWEST)
    assert grammar_process.behind_others(lambda: os.nice(0)) == expected
    assert os.nice(0) == before


@linux
def test_a_grammar_is_made_behind_others():
    one = of_embedded(Bounds(making=1.0))
    GrammarText(one, '{"type": "string"}', None).after(())
    text = GrammarText(one, json.dumps(HOSTILE["patterns"]), None)
    thread = threading.Thread(target=pytest.raises, args=(Refused, text.after, ()))
    thread.start()
    deadline, seen = time.monotonic() + 60, set()
    expected = min(os.nice(0) + grammar_process.NICE, LOWEST)
    while thread.is_alive() and expected not in seen and time.monotonic() < deadline:
        seen |= {nice for child in children(os.getpid()) for nice in nices(child)}
        time.sleep(0.005)
    thread.join()
    assert expected in seen


def children(process: int) -> list[int]:
    """Return the processes below this one, at all depths."""
    found = []
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        with suppress(OSError):
            for child in map(int, task.read_text().split()):
                found += [child, *children(child)]
    return found


def nices(process: int) -> list[int]:
    found = []
    for stat in Path(f"/proc/{process}/task").glob("*/stat"):
        with suppress(OSError):
            found.append(int(stat.read_text().rpartition(")")[2].split()[16]))
    return found


def test_a_grammar_that_must_be_made_again_counts_as_the_text_s_own():
    """Another text's step waits for it."""
    few = of_embedded(Bounds(text=0.0, token=0.0))
    text = GrammarText(few, '{"type": "string"}', None)
    text.after(())
    with pytest.raises(TooMuch):
        for _ in range(2000):
            with grammar._pool._lock:
                grammar._pool._close(text)
            text.after(())


def test_many_texts_share_few_processes(tokenizer):
    """The longest waiting ones lose theirs, and go on where they were."""
    schemas = [json.dumps({"const": f"number {number} of many"}) for number in range(20)]
    texts = [GrammarText(tokenizer, schema, None) for schema in schemas]
    documents: list[list[int]] = [[] for _ in texts]
    while not all(one and one[-1] == END for one in documents):
        for text, document in zip(texts, documents, strict=True):
            if document[-1:] != [END]:
                forced, mask = text.after((), 3)
                if not forced:  # several tokens begin the rest
                    bits = int.from_bytes(mask, "little")
                    forced = [(bits & -bits).bit_length() - 1]
                text.commit(forced)
                document += forced
        assert len(grammar._pool._texts) <= Bounds.processes
    for schema, document in zip(schemas, documents, strict=True):
        assert json.loads(TOKENIZER.decode(document[:-1])) == json.loads(schema)["const"]
    for text in texts:
        text.close()


def test_a_process_that_has_gone_is_replaced():
    one = of_embedded()
    assert GrammarText(one, '{"type": "null"}', None).after(()).mask
    one._door.close()
    assert GrammarText(one, '{"type": "array"}', None).after(()).mask


def leaves_nothing(one: GrammarTokenizer, monkeypatch) -> int:
    """Ask for three grammars, each of which is refused. Returns how many processes were started."""
    started, start = [], subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **b: started.append(1) or start(*a, **b))
    gc.collect()
    before = children(os.getpid()), len(os.listdir("/proc/self/fd"))
    for number in range(3):
        with pytest.raises(Refused):
            GrammarText(one, json.dumps({"const": number}), None).after(())
        assert (children(os.getpid()), len(os.listdir("/proc/self/fd"))) == before
    return len(started)


@linux
def test_a_tokenizer_that_grammars_cannot_use_is_tried_once_and_leaves_nothing(monkeypatch):
    one = GrammarTokenizer('{"model": {"type": "none"}}', SIZE, SIZE, END)
    assert leaves_nothing(one, monkeypatch) == 1


@linux
def test_a_tokenizer_whose_process_ends_without_a_reason_is_tried_again(monkeypatch, tmp_path):
    """It may have ended for want of memory at that moment."""
    one, program = of_embedded(), tmp_path / "program.py"
    program.write_text("raise SystemExit")
    with monkeypatch.context() as patch:
        patch.setattr(grammar, "PROGRAM", program)
        assert leaves_nothing(one, patch) == 3
    assert GrammarText(one, '{"type": "null"}', None).after(()).mask


def test_a_remembered_refusal_keeps_no_tokenizer(tokenizer):
    one = of_embedded()
    text = GrammarText(one, '{"type": "no such type"}', None)
    for _ in range(2):
        with pytest.raises(Refused):
            text.after(())
    text.close()
    gone = weakref.ref(one)
    del one, text
    GrammarText(tokenizer, '{"type": "boolean"}', None).after(())  # closed texts go then
    gc.collect()
    assert gone() is None


def test_the_process_of_an_ended_text_serves_the_next_with_its_grammar(tokenizer):
    schema = json.dumps({"type": "integer", "maximum": 77})
    first = GrammarText(tokenizer, schema, None)
    begin = first.after(())
    first.commit([TOKENIZER("7")["input_ids"][0]])
    assert first.after(()) != begin
    pipe = first.pipe
    first.close()
    second = GrammarText(tokenizer, schema, None)
    assert second.after(()) == begin
    assert second.pipe is pipe


def test_a_forked_process_leaves_its_parents_grammars_alone(tokenizer):
    text = GrammarText(tokenizer, '{"enum": ["a", "b"]}', None)
    begin = text.after(())
    child = os.fork()
    if child == 0:
        same = False
        try:
            same = text.after(()) == begin
        finally:
            os._exit(not same)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert text.after(()) == begin


def test_a_grammar_that_nobody_waits_for_any_more_is_given_up():
    """While it is being made, and while it waits for its turn; the system ends the process that makes it."""
    tokenizer = of_embedded(Bounds(making=60, megabytes=1024))
    text = GrammarText(tokenizer, "{}", None)
    text.after(())
    processes = children(os.getpid())
    schema, until = json.dumps(HOSTILE["patterns without end"]), time.monotonic() + 0.6
    before = WANTED.set(lambda: time.monotonic() < until)
    try:
        with pytest.raises(Unwanted):
            GrammarText(tokenizer, schema, None).after(())
        with grammar._pool.turn(), grammar._pool.turn(), pytest.raises(Unwanted):
            GrammarText(tokenizer, schema, None).after(())
    finally:
        WANTED.reset(before)
    patience = time.monotonic() + 5
    while (left := children(os.getpid())) != processes and time.monotonic() < patience:
        time.sleep(0.05)
    assert left == processes
    assert GrammarText(tokenizer, '{"type": "null"}', None).after(()).mask, "the next is made"
    text.close()


def test_texts_that_begin_have_their_turns_in_the_order_in_which_they_came():
    came = []

    def begin(number: int) -> None:
        with grammar._pool.turn():
            came.append(number)

    threads = [threading.Thread(target=begin, args=(number,)) for number in range(12)]
    with grammar._pool.turn(), ExitStack() as last:
        last.enter_context(grammar._pool.turn())
        for count, thread in enumerate(threads):
            thread.start()
            while len(grammar._pool._line) < Bounds.beginning + count + 1:
                time.sleep(0.001)
        time.sleep(3 * grammar.LOOK)  # each looks whether it is still wanted
        last.close()
        for thread in threads:
            thread.join(30)
    assert came == sorted(came) and len(came) == len(threads)


def test_what_is_known_of_a_grammar_waits_for_no_turn(tokenizer):
    """Neither its refusal nor a process that has it."""
    known = {"type": "integer", "maximum": 78}
    first = GrammarText(tokenizer, json.dumps(known), None)
    begin = first.after(())
    first.close()
    with pytest.raises(Refused):
        GrammarText(tokenizer, '{"type": "no such type"}', None).after(())
    until = time.monotonic() + 2
    before = WANTED.set(lambda: time.monotonic() < until)
    try:
        with grammar._pool.turn(), grammar._pool.turn():
            with pytest.raises(Refused):
                GrammarText(tokenizer, '{"type": "no such type"}', None).after(())
            assert GrammarText(tokenizer, json.dumps(known), None).after(()) == begin
    finally:
        WANTED.reset(before)


def test_one_client_s_texts_begin_one_at_a_time_and_others_pass_them():
    began = []

    def begin(client: str, name: str, free: threading.Event) -> None:
        CLIENT.set(client)  # a thread has a context of its own
        with grammar._pool.turn():
            began.append(name)
            free.wait(60)

    first, later = threading.Event(), threading.Event()
    texts = [("a", "a1", first), ("a", "a2", later), ("a", "a3", later), ("b", "b1", later)]
    threads = []
    for count, text in enumerate(texts):
        threads.append(threading.Thread(target=begin, args=text))
        threads[-1].start()
        while len(grammar._pool._line) <= count:
            time.sleep(0.01)
    patience = time.monotonic() + 60
    while len(began) < 2 and time.monotonic() < patience:
        time.sleep(0.01)
    assert sorted(began) == ["a1", "b1"]
    first.set()
    while len(began) < 3 and time.monotonic() < patience:
        time.sleep(0.01)
    assert began[2] == "a2"
    later.set()
    for thread in threads:
        thread.join()
