"""OpenVINO GenAI as a peer of ``bench --peer openvino``: the engine that a user of a CPU would install instead.

It runs in an environment of its own (``make openvino-peer``), for its exporter wants an older
transformers, and answers over pipes: a line of JSON each way a continuation.
"""
