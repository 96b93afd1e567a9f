// Two instruments that calculate: up to which length a draft pays, and what a pass costs by the number of its rows.
(function (D) {
  "use strict";
  const two = (value) => value.toFixed(2), each = (value) => (value < 0.1 ? value.toPrecision(2) : two(value));

  /** spec: {start: {alpha, cost, drafted, gain}, longest, example, speed}. speed: false leaves out the price and the speed. */
  D.lessonLength = function (spec, { changed }) {
    const speedy = spec.speed !== false, dearest = Math.max(1, Math.ceil(spec.start.cost * 100) / 100);
    const now = { alpha: spec.start.alpha, cost: spec.start.cost, k: Math.min(4, spec.longest) };
    const slider = (name, label, high, step, told) => D.lessonSlider({ label, low: 0, high, step, value: now[name], told, onInput: (value) => { now[name] = value; draw(); changed(); } });
    const parts = { alpha: slider("alpha", "α, a guess is kept", 0.99, 0.01, two), cost: slider("cost", "c, price of a drafted token", dearest, 0.01, (value) => `${two(value)} passes`), k: slider("k", "k, tokens drafted in a step", spec.longest, 1, String) };
    const picture = D.el("div", { class: "ln-picture" }), said = D.el("p", { class: "ln-verdict", role: "status" });
    const back = D.el("button", { type: "button", class: "ln-button", text: speedy ? "α and c of the run" : "α of the run", onclick: () => { Object.assign(now, { alpha: spec.start.alpha, cost: spec.start.cost }); draw(); changed(); } });
    const element = D.el("div", { class: "ln-length" }, ...Object.entries(parts).filter(([name]) => speedy || name !== "cost").map(([, one]) => one.element), D.el("div", { class: "ln-buttons" }, back), picture, said,
      D.el("p", { class: "ln-quiet", text: `In the run ${spec.example}${spec.lane ? `, lane ${spec.lane},` : ""} a guess was kept with chance ${two(spec.start.alpha)}.${!speedy ? "" : ` A drafted token cost ${two(spec.start.cost)} of a pass over one row: ${two(spec.start.drafting)} to draft it, ${two(spec.start.checking)} for its row in the check. It drafted ${spec.start.drafted.toFixed(1)} tokens a step, gained ${two(spec.start.gain)}, and was ${two(spec.start.speed)} times as fast as plain decoding, measured.`}` }));

    function draw() {
      for (const [name, one] of Object.entries(parts)) one.set(now[name]);
      const { alpha, cost, k } = now, ks = Array.from({ length: spec.longest + 1 }, (_, i) => i), best = D.bestLength(alpha, cost, spec.longest);
      const fast = ks.map((i) => [i, D.speedup(alpha, cost, i)]), gained = ks.map((i) => [i, D.expectedTokens(alpha, i)]), top = Math.ceil(Math.max(2, ...gained.map(([, y]) => y)));
      const ticks = Array.from({ length: Math.min(top, 8) + 1 }, (_, i) => Math.round((i * top) / Math.min(top, 8)));
      picture.replaceChildren(D.lessonChart({
        x: { low: 0, high: spec.longest, ticks: ks.filter((i) => i % Math.ceil(spec.longest / 8) === 0).map((i) => [i, String(i)]), label: "k, tokens drafted in a step" },
        y: { low: 0, high: top, ticks: [...new Set(ticks)].map((i) => [i, String(i)]), label: speedy ? "times" : "tokens a step" },
        lines: [...(speedy ? [{ name: "times as fast as plain decoding", points: fast, dots: true }] : []), { name: "tokens a step", points: gained, dots: !speedy }],
        marks: !speedy ? [{ at: [k, D.expectedTokens(alpha, k)], words: `k ${k}`, kind: "own" }] : [{ at: [best, D.speedup(alpha, cost, best)], words: `best ${best}`, kind: "best" }, ...(k === best ? [] : [{ at: [k, D.speedup(alpha, cost, k)], words: `k ${k}`, kind: "own" }])],
        told: !speedy ? `Tokens a step over draft length. At ${k}: ${two(D.expectedTokens(alpha, k))}.` : `Speed over draft length. Best at ${best}: ${two(D.speedup(alpha, cost, best))} times plain decoding. At ${k}: ${two(D.speedup(alpha, cost, k))} times.`,
      }), D.chartKey([...(speedy ? ["times as fast as plain decoding"] : []), "tokens a step"]));
      D.write(said, !speedy ? `With k = ${k} a step gains ${two(D.expectedTokens(alpha, k))} tokens.` : best ? `With k = ${k} a step gains ${two(D.expectedTokens(alpha, k))} tokens and decoding is ${two(D.speedup(alpha, cost, k))} times as fast. Best is k = ${best}: ${two(D.speedup(alpha, cost, best))} times.`
        : `With k = ${k} decoding is ${two(D.speedup(alpha, cost, k))} times as fast. No draft pays here: best is to draft nothing.`);
    }
    draw();
    const to = (letter) => (value) => `set ${letter} to ${letter === "k" ? value : two(value)}`;
    return { element, settings: () => ({ ...now }), depends: { best: ["alpha", "cost"], gain: ["alpha", "k"] }, tell: { alpha: to("α"), cost: to("c"), k: to("k") },
      readings: () => ({ best: D.bestLength(now.alpha, now.cost, spec.longest), gain: D.expectedTokens(now.alpha, now.k) }) };
  };

  const MODEL = 8e9, MOST = 512;   // a model of eight billion weights of two bytes each, for the machines of the data sheets

  /** spec: {measured: [[rows, ms]], bytes, machines}. */
  D.lessonPasses = function (spec, { changed }) {
    const first = spec.measured[0][1], lines = [{ name: "measured: the small model of these runs", points: spec.measured.filter(([rows]) => rows <= MOST).map(([rows, ms]) => [rows, Math.max(1, ms / first)]), dots: true }];
    let chosen = 1 + spec.machines.findIndex(({ name }) => name === spec.machine), rows = 8;
    const over = (machine, count) => D.roofline(machine, 2 * MODEL, MODEL, count);
    const steps = Array.from({ length: 28 }, (_, i) => 2 ** (i / 3)).filter((count) => count <= MOST + 1);
    for (const machine of spec.machines) lines.push({ name: machine.name, points: steps.map((count) => [count, over(machine, count) / over(machine, 1)]) });
    const pick = D.el("select", { class: "ln-select", "aria-label": "Machine", onchange: () => { chosen = Number(pick.value); draw(); changed(); } }, ...lines.map(({ name }, i) => D.el("option", { value: i, text: name, selected: i === chosen })));
    const slider = D.lessonSlider({ label: "n, rows in one pass", low: 0, high: 9, step: 1, value: 3, told: (power) => String(2 ** power), onInput: (power) => { rows = 2 ** power; draw(); changed(); } });
    const picture = D.el("div", { class: "ln-picture" }), said = D.el("p", { class: "ln-verdict", role: "status" }), sheet = D.el("p", { class: "ln-quiet" });
    const element = D.el("div", { class: "ln-passes" }, D.el("div", { class: "ln-buttons" }, pick), slider.element, picture, said, sheet);

    /** The cost of a pass over this many rows, in passes over one row, interpolated between the points of the line. */
    function relative(count) {
      const { points } = lines[chosen], at = points.findIndex(([x]) => x >= count);
      if (at < 0) return null;
      if (at === 0) return points[0][1];
      const [[x0, y0], [x1, y1]] = [points[at - 1], points[at]];
      return y0 + ((count - x0) / (x1 - x0)) * (y1 - y0);
    }
    const free = () => (chosen ? D.freeRows(spec.machines[chosen - 1], 2 * MODEL, MODEL) : Math.max(...spec.measured.filter(([, ms]) => ms <= 2 * first).map(([count]) => count)));

    function draw() {
      const price = relative(rows), ticks = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512];
      picture.replaceChildren(D.lessonChart({
        x: { low: 1, high: MOST, log: true, ticks: ticks.filter((i, at) => at % 2 === 0 || D.chartWidth() > 400).map((i) => [i, String(i)]), label: "n, rows in one pass" },
        y: { low: 0.8, high: 64, log: true, ticks: [1, 2, 4, 8, 16, 32, 64].map((i) => [i, `${i}×`]), label: "cost of the pass" },
        lines: lines.map((one, i) => ({ ...one, faint: i !== chosen })),
        marks: price === null ? [] : [{ at: [rows, price], words: `${rows} rows: ${two(price)}×`, kind: "own" }],
        told: `Cost of a pass over rows, in passes over one row. ${price === null ? "" : `${rows} rows cost ${two(price)}.`}`,
      }), D.chartKey(lines.map(({ name }) => name)));
      D.write(said, price === null ? `A pass over ${rows} rows was not measured.` : `A pass over ${rows} rows costs ${two(price)} times a pass over one row: ${each(price / rows)} a row.`);
      D.write(sheet, chosen ? `From peak figures, which no program reaches: ${spec.machines[chosen - 1].sheet}. A model of eight billion weights, two bytes each: ${over(spec.machines[chosen - 1], 1).toFixed(1)} ms a pass for up to ${free()} rows.`
        : `Median passes of finished runs: ${first.toFixed(2)} ms over one row. The weights have ${(spec.bytes / 1e6).toFixed(0)} MB, and every pass reads all of them.`);
    }
    draw();
    return { element, settings: () => ({ machine: lines[chosen].name, rows }), depends: { free: ["machine"], gain: ["machine", "rows"] }, tell: { machine: (name) => `choose “${name}”`, rows: (count) => `set n to ${count}` },
      readings: () => ({ free: free(), gain: relative(rows) }) };
  };
})(globalThis.Draftscope);
