// The exhibit "clouds": clouds of points side by side on the same axes. Accepted, rejected and recovered points have
// marks of their own, so that they can be told apart without colours.
/** @import { Exhibit } from "./types.d.ts" */
/** @import { Drawing } from "./view-types.d.ts" */
import { el, svgEl } from "./base.js";
import { ensure, isNumber, listOf, shortText } from "./cells.js";
import { plural } from "./words.js";

const PANELS = 4, CLOUDS = 4, POINTS = 600, SIDE = 168, EDGE = 8, DOT = 2.4;
const MARKS = {
  rejected: (x, y) => `M${x - DOT} ${y - DOT}L${x + DOT} ${y + DOT}M${x + DOT} ${y - DOT}L${x - DOT} ${y + DOT}`,
  recovered: (x, y) => `M${x} ${y - DOT - 1}L${x + DOT + 1} ${y}L${x} ${y + DOT + 1}L${x - DOT - 1} ${y}Z`,
};
const dot = (x, y) => `M${x - DOT} ${y}a${DOT} ${DOT} 0 1 0 ${2 * DOT} 0a${DOT} ${DOT} 0 1 0 ${-2 * DOT} 0`;

const point = (given) => ensure(Array.isArray(given) && given.length === 2 && given.every(isNumber), given);
const part = (given) => ensure(Boolean(given) && typeof given === "object", given);

/** @param {Exhibit} exhibit */
function read({ panels }) {
  return listOf(panels).slice(0, PANELS).map((panel) => ({
    name: shortText(part(panel).name, 40),
    clouds: listOf(panel.clouds).slice(0, CLOUDS)
      .map((cloud) =>
        ({ name: shortText(part(cloud).name, 40), points: listOf(cloud.points).slice(0, POINTS).map(point) })),
  }));
}

/** The middle and half the side of the square that holds all points. */
function frame(points) {
  const ends = [0, 1].map((axis) => {
    const numbers = points.map((one) => one[axis]);
    return [Math.min(...numbers), Math.max(...numbers)];
  });
  return { middle: ends.map(([low, high]) => (low + high) / 2),
    half: Math.max(...ends.map(([low, high]) => high - low)) / 2 || 1 };
}

/** @type {(exhibit: Exhibit) => Drawing} */
export function cloudsExhibit(exhibit) {
  const panels = read(exhibit), all = panels.flatMap(({ clouds }) => clouds.flatMap(({ points }) => points));
  ensure(all.length);
  const { middle, half } = frame(all), scale = (SIDE / 2 - EDGE) / half;
  const at = ([x, y]) => [(SIDE / 2 + (x - middle[0]) * scale).toFixed(1), (SIDE / 2 - (y - middle[1]) * scale)
    .toFixed(1)].map(Number);
  const look = (name) => (name === "accepted" || Object.hasOwn(MARKS, name) ? name : null);
  const drawn = ({ name, points }) => svgEl("path",
    { class: "ds-cloud", "data-status": look(name),
      d: points.map((one) => (look(name) && MARKS[name] || dot)(...at(one))).join("") });
  const key = ({ name, points }) => el("span", {},
    svgEl("svg", { width: 12, height: 12, viewBox: "0 0 12 12", "aria-hidden": "true" },
      svgEl("path", { class: "ds-cloud", "data-status": look(name), d: (look(name) && MARKS[name] || dot)(6, 6) })),
    `${name} (${points.length})`);
  const figures =
    panels.map(({ name, clouds }) => el("div", { class: "ds-cloud-panel" },
      el("p", { class: "ds-cloud-name", text: name }),
      svgEl("svg", { width: SIDE, height: SIDE, viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": "true" },
        svgEl("rect", { class: "ds-cloud-paper", width: SIDE, height: SIDE, rx: 6 }), ...clouds.map(drawn)),
      el("p", { class: "ds-quiet ds-cloud-key" }, ...clouds.map(key))));
  const said =
    panels.map(({ name, clouds }) =>
      `${name}: ${clouds.map((one) => `${plural(one.points.length, "point")} ${one.name}`).join(", ")}`);
  return { content: el("div", { class: "ds-clouds" }, ...figures), wide: true, summary: `${said.join(". ")}.`,
    left: exhibit.panels.length > PANELS && "only the first frames are drawn" };
}
