"""Steps on buffers that keep their place: what a CUDA graph can replay.

A pass of a model is a pure function of one small int32 buffer and the KV buffers (``step``). It has
a few fixed sizes, padded rows are masked out and never committed (``inputs``), and it never asks
the host anything (``host_free``). So on CUDA it is captured once a size and replayed (``capture``);
the buffers outlive a run and serve the next one (``slots``). On a CPU the same function is simply
called, which is how the tests hold it against the plain way. Models of the Llama class make it in a
third of the launches (``lean_rows``).

Where nobody watches, the target's pass also judges its tree and moves the kept rows (``question``,
``verdict``, ``judge``), and drafters leave what they chose on the device (``unwatched``, ``device_*``,
``choice``, ``best_first``): a step is a copy in, a replay, and the few numbers of the verdict.
"""
