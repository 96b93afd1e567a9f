"""Operations of a speculative step, one per file: a torch reference, a Triton kernel, a dispatcher.

``<op>_reference`` runs on any device and is the definition; ``<op>_triton`` launches the kernel;
``<op>`` takes the kernel for tensors on a CUDA device and the reference elsewhere.
"""
