// Small worlds for the tables of test_functions.py: steps, traces and a clock that a test turns by hand.
globalThis.toy = {
  /** A tree of equally tall nodes laid out: the y of each. parents: -1 = the root. */
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
      kind: "step", nodes: { token: nodes.map((_, i) => i), piece: nodes.map((_, i) => `n${i}`), parent: column(0), depth, status: column(1), p: column(2, 0.5), q: column(3, null) },
      judgements: [], distributions: [], output: { tokens: pieces.map((_, i) => i), pieces, final }, milliseconds: spent,
    };
  },

  /** How a camera frames a box on a canvas of 300 by 200. */
  framed: (left, right, top, bottom, focus) => Draftscope.framing({ left, right, top, bottom, focus }, 300, 200, { least: 0.1, legible: 0.5, most: 1 }),

  /** A model that was fed these lines; objects are written as JSON. */
  model(...lines) {
    const model = Draftscope.traceModel();
    model.feed(lines.map((line) => (typeof line === "string" ? line : JSON.stringify(line)) + "\n").join(""));
    return model;
  },

  /** What a reader makes of one string after the other. */
  read(...wholes) {
    const reader = Draftscope.lineReader();
    return wholes.map((whole) => { const { reset, added, trouble } = reader.feed(whole); return [reset, added.length, Boolean(trouble)]; });
  },

  /** Which step and stage a player shows at which millisecond. Frames come every 10 ms. */
  play({ pace = null, totals, live = false, drafted = 1, drive = (player) => player.play() }) {
    const waiting = [], shown = [], { requestAnimationFrame: ask, cancelAnimationFrame: take } = globalThis;
    globalThis.requestAnimationFrame = (draw) => waiting.push(draw);
    globalThis.cancelAnimationFrame = () => { waiting.length = 0; };
    try {
      let now = 0;
      const model = { steps: totals.map((total) => ({ view: { count: drafted, total } })), summary: live ? null : {} };
      const player = Draftscope.player(model, { show: (step, stage) => shown.push([now, step, stage]), changed() {} });
      if (pace) player.setPace(pace);
      drive(player);
      for (let i = 0; i < 1000 && waiting.length; i++) { now += 10; waiting.shift()(now); }
    } finally {
      Object.assign(globalThis, { requestAnimationFrame: ask, cancelAnimationFrame: take });
    }
    return shown;
  },
};
