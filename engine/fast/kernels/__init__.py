"""Operations of a speculative step. Each has a file with a torch reference, a Triton kernel and a dispatcher.

``<op>_reference`` runs on any device and defines the result. ``<op>_triton`` launches the kernel. ``<op>`` calls the
kernel for tensors on a CUDA device, and the reference elsewhere.
"""
