// A small picture for each lesson's card: its idea in a few strokes, in the colours of the drawings.
import { svgEl } from "../base.js";

const dot = (x, y, kind, r = 5) => svgEl("circle", { cx: x, cy: y, r, "data-kind": kind });
const line = (d, kind) => svgEl("path", { d, "data-kind": kind });
const box = (x, y, width, height, kind) => svgEl("rect", { x, y, width, height, rx: 3, "data-kind": kind });
const row = (count, make) => Array.from({ length: count }, (_, i) => make(i));

/** The pictures by lesson, in a frame of 120 by 60. */
const EMBLEMS = {
  slow: () => [...row(6, (i) => box(6 + 16 * i, 8, 12, 44, "soft")), line("M102 30h12m-5 -5l5 5l-5 5", "kept")],
  "guess-and-check": () => [line("M12 30H66", "kept"), line("M66 30H108", "refused"),
    ...row(4, (i) => dot(12 + 18 * i, 30, "kept")), dot(84, 30, "refused"), dot(102, 30, "soft")],
  rule: () => [box(14, 26, 26, 30, "kept"), box(14, 8, 26, 16, "refused"), box(48, 30, 26, 26, "kept"),
    box(82, 40, 26, 16, "kept"), box(82, 16, 26, 22, "bonus"), dot(27, 40, "coin", 3), dot(28, 15, "coin", 3)],
  "how-long": () => [line("M10 50C30 14 44 10 58 12S96 26 112 44", "kept"), dot(56, 12, "bonus"),
    line("M8 52H114", "axis")],
  trees: () => [line("M12 30L44 14L78 14L108 24", "kept"),
    line("M12 30L44 46L78 38M44 46L78 54M78 14L108 6", "refused"),
    ...[[12, 30], [44, 14], [78, 14], [108, 24]].map(([x, y]) => dot(x, y, "kept")),
    ...[[44, 46], [78, 38], [78, 54], [108, 6]].map(([x, y]) => dot(x, y, "soft", 4))],
  retrieval: () => [...row(3, (i) => line(`M10 ${12 + 18 * i}H110`, "axis")), box(22, 6, 42, 12, "kept"),
    box(58, 42, 42, 12, "bonus"), line("M44 20C44 34 78 28 79 40m-5 -5l5 5l4 -6", "kept")],
  heads: () => [box(8, 12, 22, 36, "soft"), ...row(3, (i) => line(`M30 30L62 ${12 + 18 * i}`, "kept")),
    ...row(3, (i) => box(62, 6 + 18 * i, 46 - 12 * i, 12, i < 2 ? "kept" : "refused"))],
  diffusion: () => row(5, (i) => [box(10 + 21 * i, 6, 16, 14, "refused"),
    box(10 + 21 * i, 24, 16, 14, i % 2 ? "refused" : "kept"), box(10 + 21 * i, 42, 16, 14, "kept")]).flat(),
  "when-not": () => [line("M10 46C40 40 70 26 110 8", "kept"), line("M10 14C40 22 70 38 110 52", "refused"),
    dot(63, 29, "coin", 4)],
  lossy: () => [line("M10 52C30 52 34 10 58 10S90 52 112 52", "kept"),
    line("M10 52C40 52 50 20 74 20S100 52 112 52", "refused")],
  "long-prompts": () => row(9, (i) => box(8 + 12 * i, 10, 8, 40, [0, 3, 4, 8].includes(i) ? "kept" : "soft")),
  experts: () => [[1, 2, 6], [1, 2, 6], [1, 6, 7]].flatMap((used, r) =>
    row(9, (i) => box(8 + 12 * i, 6 + 18 * r, 9, 12, used.includes(i) ? "kept" : "soft"))),
};

/**
 * The picture of this lesson; null for one that has none.
 * @type {(name: string) => Element | null}
 */
export const emblem = (name) => (Object.hasOwn(EMBLEMS, name)
  ? svgEl("svg", { class: "ln-emblem", viewBox: "0 0 120 60", "aria-hidden": "true" }, ...EMBLEMS[name]()) : null);
