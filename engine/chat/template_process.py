"""The process that renders chat templates (``engine.chat.chat_template`` starts it by its path).

A template is an untrusted program: transformers' sandbox keeps it from files and objects, and this process limits its
time, its memory and the length of its text. If a rendering computes for too long, the system ends it together with this
process, even inside one long operation.

Arguments: the file descriptor from which requests are read; seconds of computing per rendering; megabytes; characters.
"""

import json
import resource
import signal
import sys
from multiprocessing.connection import Connection


def main(descriptor: int, seconds: float, megabytes: int, characters: int) -> None:
    sys.modules["torch"] = None  # type: ignore[assignment]  # texts need none, and it takes seconds
    from transformers.utils import logging

    logging.set_verbosity_error()
    from transformers.utils.chat_template_utils import render_jinja_template

    most = megabytes << 20
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    pipe = Connection(descriptor)
    while True:
        try:
            wish = json.loads(pipe.recv_bytes())
        except EOFError:  # the requesting process has ended
            return
        signal.setitimer(signal.ITIMER_PROF, seconds)
        answer = rendered(render_jinja_template, wish, characters)
        signal.setitimer(signal.ITIMER_PROF, 0)
        pipe.send_bytes(json.dumps(answer).encode())


def rendered(render, wish: dict, characters: int) -> dict[str, str]:
    """{"text": the rendered text}, or {"refusal": the reason why there is none}."""
    try:
        (text,), _ = render(**wish)
    except MemoryError:
        return {"refusal": "it takes too much memory"}
    except Exception as error:  # noqa: BLE001 - a program of a stranger's may raise anything
        return {"refusal": str(error)[:500] or type(error).__name__}
    if len(text) > characters:
        return {"refusal": f"its text is longer than {characters:,} characters"}
    return {"text": text}


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
