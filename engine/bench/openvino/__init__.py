"""OpenVINO GenAI as a peer of ``bench --peer openvino``: the engine that a user of a CPU would install instead.

It runs in an environment of its own (``make openvino-peer``), because its exporter needs an older transformers,
and answers over pipes: one line of JSON each way per continuation.
"""
