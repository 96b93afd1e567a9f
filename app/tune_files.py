"""What the Tune tab asks of the server besides measuring: a setting for another engine, another engine's record, estimates
for another machine, and the five numbers called acceptance.

Everything comes from a browser: each function checks its size, and answers with ``error``, one sentence, where it refuses.
"""


def tune_export(record: str, engine: str) -> dict:
    return {"error": "Not yet."}


def tune_import(name: str, text: str) -> dict:
    return {"error": "Not yet."}


def tune_estimate(record: str, wish: dict) -> dict:
    return {"error": "Not yet."}


def tune_five(line: dict) -> dict:
    return {"error": "Not yet."}
