"""Judges a tree of drafted tokens on the device, in one launch.

A place is the root or a node; its draws are the tokens drafted under it. Letters in shapes: N nodes, M draws of all
places together, V vocabulary.

rows [N + 1, V]: the target's probabilities at the root and at each node, with temperature and truncation applied; for
``greedy`` any scores, such as logits. The rules are those of ``engine.rules``, draw for draw and coin for coin:

greedy: a child is accepted if it is the argmax.
sampler_match: a child is accepted if it is argmax(p / noise).
rejection: a child is accepted with probability min(1, p / q); after a rejection the residual replaces p. This is done
in fp64, and the recovered token is argmax(residual / noise) in fp32.

One program per place computes two things: for every draw of the place, the probability of accepting it if the draws
before it were rejected; and the token that would be final if the walk ended at this place. Neither depends on a coin.
The last program to finish then tosses the coins in a walk over scalars.

A walk that comes to a row with NaN ends at that row: no child is judged, the final token is some token of the
vocabulary, and the verdict's final kind is NOT_A_NUMBER.

Bytes moved: greedy reads the rows once, 4 (N + 1) V. sampler_match reads the noise as well, and so does rejection at a
place without draws. At a place with k draws, rejection moves about 8 (k + 1) V, and for k > 1 another 16 k V for the
residual. Floating-point operations per number: about 2 for greedy, up to 10 k for rejection.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from engine.fast.kernels.flat_tree import FlatTree
from engine.fast.kernels.judging import argmax, weigh_draws
from engine.fast.kernels.lang import on_gpu, power_of_two, tl, triton

RULES = ("greedy", "rejection", "sampler_match")
IGNORED, REJECTED, ACCEPTED = 0, 1, 2
BONUS, RECOVERED, NOT_A_NUMBER = 0, 1, 2


@dataclass(frozen=True)
class DeviceVerdict:
    """The verdict on a tree of N nodes, on the tree's device.

    numbers: int32 [4 + 3 N], all whole numbers in one tensor; the properties are views of it. accept, p, q: fp64 [M],
    each draw's acceptance probability, and the p and q from which it was computed (rejection only).
    """

    numbers: Tensor
    accept: Tensor
    p: Tensor
    q: Tensor

    @property
    def result(self) -> Tensor:
        """Four numbers, [4]: how many nodes are accepted; the final token; BONUS, RECOVERED or NOT_A_NUMBER; how many
        coins were tossed."""
        return self.numbers[:4]

    @property
    def path(self) -> Tensor:
        """The accepted nodes from depth 1 downwards, [N]; the entries after the last accepted node are undefined."""
        return self._column(0)

    @property
    def kept(self) -> Tensor:
        """The tokens of the accepted nodes, [N], in the order of ``path``; the entries after the last of these tokens
        are undefined."""
        return self._column(1)

    @property
    def status(self) -> Tensor:
        """The status of each node, [N]: IGNORED, REJECTED or ACCEPTED."""
        return self._column(2)

    def _column(self, index: int) -> Tensor:
        size = (len(self.numbers) - 4) // 3
        return self.numbers[4 + index * size : 4 + (index + 1) * size]


def verify_tree(
    rule: str, rows: Tensor, tree: FlatTree, coins: Tensor | None, noise: Tensor | None
) -> DeviceVerdict:
    """Judge a tree under ``rule``, one of RULES.

    rows: [N + 1, V], the target's probabilities (or, for greedy, any scores) at the root and at each node. coins: fp64
    [at least M], uniform numbers in the order of the tosses (rejection only). noise: fp32 [depths + 1, V], Exp(1); row
    d is for the token after d accepted nodes (not for greedy).
    """
    run = verify_tree_triton if on_gpu(rows) else verify_tree_reference
    return run(rule, rows, tree, coins, noise)


def verify_tree_reference(rule, rows, tree, coins=None, noise=None) -> DeviceVerdict:
    """Define the result of ``verify_tree`` in torch: first weigh every place as if the walk reached it, then walk."""
    draws, places = tree.draws.numel(), tree.size + 1
    table = torch.zeros(3, draws, dtype=torch.float64, device=rows.device)
    finals = [_weigh_place(rule, rows[place], tree, place, noise, table) for place in range(places)]
    accept, p, q = table
    tokens, first, order = tree.tokens.tolist(), tree.first.tolist(), tree.draws.tolist()
    status, path, place, tossed = [IGNORED] * tree.size, [], 0, 0
    while finals[place] >= 0:
        accepted_child = None
        for draw in range(first[place], first[place + 1]):
            node = order[draw]
            if rule == "rejection":
                keep = float(coins[tossed]) < float(accept[draw])
                tossed += 1
            else:
                keep = tokens[node] == finals[place]
            status[node] = ACCEPTED if keep else max(status[node], REJECTED)
            if keep:
                accepted_child = node
                if rule == "rejection":
                    break
        if accepted_child is None:
            break
        path.append(accepted_child)
        place = accepted_child + 1
    token, final = finals[place], RECOVERED if first[place + 1] > first[place] else BONUS
    if token < 0:
        token, final = -1 - token, NOT_A_NUMBER
    result = [len(path), token, final, tossed]

    rest = [-1] * (tree.size - len(path))
    numbers = [*result, *path, *rest, *(tokens[node] for node in path), *rest, *status]
    numbers = torch.tensor(numbers, dtype=torch.int32, device=rows.device)
    return DeviceVerdict(numbers, accept, p, q)


def _weigh_place(rule, row, tree, place, noise, table) -> int:
    """Write the acceptance probability, p and q of each draw under the place to ``table`` [3, M]. Returns the final
    token t of a walk that ends at this place, or -1 - t if the row contains NaN."""
    token = _ending(rule, row, tree, place, noise, table)
    return -1 - token if bool(row.isnan().any()) else token


def _ending(rule, row, tree, place, noise, table) -> int:
    if rule == "greedy":
        return int(row.argmax())
    here = noise[int(tree.depths[place])]
    begin, end = int(tree.first[place]), int(tree.first[place + 1])
    if rule == "sampler_match" or begin == end:
        return int((row / here).argmax())
    law, q = row.double() / row.double().sum(), None
    if int(tree.q_row[place]) >= 0:
        q = tree.q[int(tree.q_row[place])].double()
        q = q / q.sum()
    for draw in range(begin, end):
        token = int(tree.tokens[int(tree.draws[draw])])
        by_q = q is not None and float(q[token]) > 0
        weight = float(q[token]) if by_q else 1.0
        table[:, draw] = torch.tensor([min(1.0, float(law[token]) / weight), law[token], weight])
        residual = (law - q).clamp(min=0) if by_q else law.clone()
        residual[token] = 0
        law = residual / residual.sum() if residual.sum() > 0 else law
        if by_q and int(tree.kinds[place]) == 2:
            q = q.index_fill(0, torch.tensor([token], device=q.device), 0.0)
            q = q / q.sum() if q.sum() > 0 else q
    return int((law.float() / here).argmax())


def verify_tree_triton(rule, rows, tree, coins=None, noise=None, block: int = 2048):
    """Do the work of ``verify_tree`` in the kernel. rows and noise are fp32 and contiguous in their last dimension.

    The number of warps is chosen so that no two threads hold the same element. Otherwise, since a place's law is
    overwritten in place, one thread could read numbers that another thread has already overwritten.
    """
    device, size, vocabulary = rows.device, tree.size, rows.shape[-1]
    block = min(block, power_of_two(vocabulary, 16))
    q = tree.q.clone() if tree.repeats_q else tree.q  # the kernel strikes rejected tokens out
    if rule == "rejection":
        law = rows.new_empty(size + 1, vocabulary, dtype=torch.float64)
    else:
        law = rows.new_empty(0, dtype=torch.float64)
    noise = rows if noise is None else noise
    coins = law if coins is None else coins
    choices_ticket = torch.zeros(size + 1 + 1, dtype=torch.int32, device=device)
    choices, ticket = choices_ticket[:-1], choices_ticket[-1:]
    numbers = torch.empty(4 + 3 * size, dtype=torch.int32, device=device)
    weights = torch.zeros(3, tree.draws.numel(), dtype=torch.float64, device=device)
    accept, p, q_used = weights
    _verify_kernel[(size + 1,)](
        rows, q, law, noise, coins,
        tree.tokens, tree.depths, tree.draws, tree.first, tree.kinds, tree.q_row,
        choices, accept, p, q_used, numbers, ticket,
        vocabulary, rows.stride(0), q.stride(0), noise.stride(0), size,
        RULE=RULES.index(rule), BLOCK=block, num_warps=max(1, min(8, block // 32)),
    )  # fmt: skip
    return DeviceVerdict(numbers, accept, p, q_used)


@triton.jit
def _walk(
    tokens, draws, first, choices, accept, coins, result, path, ids, status, RULE: tl.constexpr
):  # fmt: skip
    """Walk from the root down, on scalars, and write the verdict. Each accepted draw moves the walk to the accepted
    node. The walk ends at a place that accepts no draw, or whose choice is negative, which stands for a row with
    NaN."""
    place = 0
    choice = tl.load(choices, cache_modifier=".cg")
    end = tl.load(first + 1, cache_modifier=".cg")
    draw = tl.where(choice < 0, end, tl.load(first))
    kept = 0
    tossed = 0
    match = -1
    going = 1
    while going == 1:
        if draw < end:
            node = tl.load(draws + draw)
            keep = draw < 0
            if RULE == 1:
                chance = tl.load(accept + draw, cache_modifier=".cg")
                keep = tl.load(coins + tossed) < chance
                tossed += 1
            else:
                keep = tl.load(tokens + node) == choice
            match = tl.where(keep, node, match)
            before = tl.load(status + node, cache_modifier=".cg")
            tl.store(status + node, tl.where(keep, 2, tl.maximum(before, 1)))
            tl.debug_barrier()
            draw += 1
            if RULE == 1:  # draws after an accepted draw are not judged
                draw = tl.where(keep, end, draw)
        elif match >= 0:
            tl.store(path + kept, match)
            tl.store(ids + kept, tl.load(tokens + match))
            kept += 1
            place = match + 1
            match = -1
            choice = tl.load(choices + place, cache_modifier=".cg")
            end = tl.load(first + place + 1)
            draw = tl.where(choice < 0, end, tl.load(first + place))
        else:
            going = 0
    recovered = tl.where(end > tl.load(first + place), 1, 0)
    tl.store(result, kept)
    tl.store(result + 1, tl.where(choice < 0, -1 - choice, choice))
    tl.store(result + 2, tl.where(choice < 0, 2, recovered))
    tl.store(result + 3, tossed)


@triton.jit(
    do_not_specialize=["size"],  # and do not specialize on where the parts of one buffer begin
    do_not_specialize_on_alignment=[
        "coins", "tokens", "depths", "draws", "first", "kinds", "q_row", "accept", "p_used",
        "q_used", "numbers", "ticket",
    ],
)  # fmt: skip
def _verify_kernel(
    rows, q, law, noise, coins,
    tokens, depths, draws, first, kinds, q_row,
    choices, accept, p_used, q_used, numbers, ticket,
    vocabulary, row_stride, q_stride, noise_stride, size,
    RULE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Program i weighs the draws under place i (the root or a node). The last program to finish walks the tree."""
    place = tl.program_id(0)
    row = rows + place.to(tl.int64) * row_stride
    path = numbers + 4
    status = path + 2 * size
    if place > 0:
        tl.store(status + place - 1, 0)
    here = noise + tl.load(depths + place).to(tl.int64) * noise_stride
    if RULE == 0:
        choice, broken = argmax(row, row, vocabulary, False, BLOCK)
    elif RULE == 2:
        choice, broken = argmax(row, here, vocabulary, True, BLOCK)
    else:
        begin = tl.load(first + place)
        end = tl.load(first + place + 1)
        if begin == end:
            choice, broken = argmax(row, here, vocabulary, True, BLOCK)
        else:
            at = tl.load(q_row + place)
            choice, broken = weigh_draws(
                row, q + tl.maximum(at, 0).to(tl.int64) * q_stride,
                law + place.to(tl.int64) * vocabulary, here,
                tokens, draws, accept, p_used, q_used, begin, end, vocabulary,
                at >= 0, tl.load(kinds + place) == 2, BLOCK,
            )  # fmt: skip
    tl.store(choices + place, tl.where(broken, -1 - choice, choice))
    tl.debug_barrier()
    if tl.atomic_add(ticket, 1, sem="acq_rel") == size:
        ids = path + size
        _walk(tokens, draws, first, choices, accept, coins, numbers, path, ids, status, RULE)
