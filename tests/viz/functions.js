// Helpers for the tables of test_words.py, test_trace_model.py, test_drawing.py and test_player.py: steps, traces and a
// clock that a test advances by hand.
const toy = (globalThis.toy = {
  /** The y of each node in the layout of a tree of equally tall nodes. parents: -1 = the root. */
  places(parents, height = 10, gap = 0) {
    const children = new Map([[-1, []]]), heights = parents.map(() => height);
    heights.root = height;
    parents.forEach((parent, i) => children.set(parent, [...(children.get(parent) || []), i]));
    return Draftscope.layout(children, heights, gap).y;
  },

  /** A step with these nodes [parent, status, p, q] that wrote these pieces. */
  step(nodes, pieces, final = "bonus", spent = {}) {
    const depth = [];
    nodes.forEach(([parent]) => depth.push(parent < 0 ? 1 : depth[parent] + 1));
    const column = (i, missing) => nodes.map((node) => (node[i] === undefined ? missing : node[i]));
    return {
      kind: "step", nodes: { token: nodes.map((_, i) => i), piece: nodes.map((_, i) => `n${i}`), parent: column(0),
        depth, status: column(1), p: column(2, 0.5), q: column(3, null) },
      judgements: [], distributions: [], output: { tokens: pieces.map((_, i) => i), pieces, final },
        milliseconds: spent,
    };
  },

  /** The same, with one distribution at the root. */
  told: (nodes, pieces, final, top) =>
    ({ ...toy.step(nodes, pieces, final), distributions: [{ node: -1, q: [], residual: [], ...top }] }),

  /** The same, every accepted and rejected node judged in turn. */
  judged(nodes, pieces = ["x"], final = "bonus") {
    const step = toy.step(nodes, pieces, final);
    nodes.forEach(([, status], node) => {
      if (status !== "ignored")
        step.judgements.push({ node, rule: "greedy", accept: Number(status === "accepted"), coin: null });
    });
    return step;
  },
  telling: (...trees) => Draftscope.tellingStep(toy.model(...trees.map((nodes) => toy.judged(nodes))).steps),
  toShow: (own, ...trees) => Draftscope.stepToShow(toy.model(...trees.map((nodes) => toy.judged(nodes))).steps, own),
  /** The nodes that wait for their verdict. */
  waits: (nodes, stage, verdicts) => nodes.map((_, i) => i)
    .filter(Draftscope.waiting(Draftscope.enrich(toy.judged(nodes), 0), stage, verdicts)),

  /** How a camera frames a box on a canvas of 300 by 200. */
  framed: (left, right, top, bottom, focus, { level = 0, far = right, low = top, high = bottom, down = false } = {}) =>
    Draftscope.framing({ k: 1, down, left, right, far, top, bottom, low, high, focus, level }, 300, 200),
  /** What a canvas of this height folds: which nodes are shown, and how many are folded below which parent. */
  folded(high, nodes, opened = []) {
    const { shown, folds } = Draftscope.foldsOf(Draftscope.enrich(toy.step(nodes, ["n0", "x"]), 0), high,
      { judged: 35, ignored: 27 }, new Set(opened));
    return [shown.flatMap((seen, i) => (seen ? [i] : [])), [...folds]];
  },

  /** A model that was fed these lines; objects are written as JSON. */
  model(...lines) {
    const model = Draftscope.traceModel();
    model.feed(lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)) + "\n").join(""));
    return model;
  },

  /** The results of one reader that is fed these strings one after the other. */
  read(...wholes) {
    const reader = Draftscope.lineReader();
    return wholes.map((whole) => {
      const { reset, added, trouble } = reader.feed(whole);
      return [reset, added.length, Boolean(trouble)];
    });
  },

  /** Which step, stage and number of verdicts a player shows at which millisecond. Frames come every 10 ms. */
  play({ pace = null, totals, judgements = 0, drafted = 1, ...more }) {
    const step = (total) => ({ view: { count: drafted, total }, judgements: Array.from({ length: judgements }) });
    return toy.run(totals.map(step), { pace, drive: (player) => player.play(), ...more })
      .map(([at, number, stage, told]) => (told === undefined || !judgements ? [at, number, stage]
        : [at, number, stage, told]));
  },

  /** An opening: the pace of each step, how long its verdict stood, and where it came to rest.
   * drafted: nodes per step; the third step from the end is the telling one. */
  opening({ drafted, drive }) {
    const nodes = (count) => Array.from({ length: count }, (_, i) => [i ? 0 : -1, i === 2 ? "rejected" : "accepted"]);
    const steps =
      toy.model(...drafted.map((count, i) => toy.judged(i === drafted.length - 3 ? nodes(count)
        : nodes(Math.min(count, 2))))).steps;
    const paces = [], words = [], began = [], ended = [];
    let after = null;
    const shown = toy.run(steps, { drive, look: (player) => {
      after = player;
      paces[player.step] = player.pace;
      words[player.step] = player.word;
    } });
    shown.forEach(([at, number, stage], i) => {
      if (stage === "commit") { began[number] = at; ended[number] = shown[i + 1][0]; }
    });
    return { paces, words, commits: began.map((at, i) => ended[i] - at), rest: shown.at(-1).slice(1, 3),
      after: after.word };
  },

  run(steps, { pace = null, live = false, drive, look = () => {} }) {
    const waiting = [], shown = [], { requestAnimationFrame: ask, cancelAnimationFrame: take } = globalThis;
    globalThis.requestAnimationFrame = (draw) => waiting.push(draw);
    globalThis.cancelAnimationFrame = () => { waiting.length = 0; };
    try {
      let now = 0;
      const model = { steps, summary: live ? null : {} };
      const player = Draftscope.makePlayer(model, { show: (step, stage, told) => {
        shown.push([now, step, stage, told]);
        if (stage) look(player);
      }, changed() {} });
      if (pace) player.setPace(pace);
      drive(player);
      for (let i = 0; i < 5000 && waiting.length; i++) { now += 10; waiting.shift()(now); }
    } finally {
      Object.assign(globalThis, { requestAnimationFrame: ask, cancelAnimationFrame: take });
    }
    return shown;
  },
});
