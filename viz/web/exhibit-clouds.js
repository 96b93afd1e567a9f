// The exhibit "clouds": clouds of points side by side on the same axes. Accepted, rejected and recovered points have
// marks of their own, so that they can be told apart without colours.
(function (D) {
  "use strict";
  const PANELS = 4, CLOUDS = 4, POINTS = 600, SIDE = 168, EDGE = 8, DOT = 2.4;
  const MARKS = {
    rejected: (x, y) => `M${x - DOT} ${y - DOT}L${x + DOT} ${y + DOT}M${x + DOT} ${y - DOT}L${x - DOT} ${y + DOT}`,
    recovered: (x, y) => `M${x} ${y - DOT - 1}L${x + DOT + 1} ${y}L${x} ${y + DOT + 1}L${x - DOT - 1} ${y}Z`,
  };
  const dot = (x, y) => `M${x - DOT} ${y}a${DOT} ${DOT} 0 1 0 ${2 * DOT} 0a${DOT} ${DOT} 0 1 0 ${-2 * DOT} 0`;

  const point = (given) => D.require(Array.isArray(given) && given.length === 2 && given.every(D.isNumber), given);
  const part = (given) => D.require(Boolean(given) && typeof given === "object", given);

  function read({ panels }) {
    return D.list(panels).slice(0, PANELS).map((panel) => ({
      name: D.words(part(panel).name, 40),
      clouds: D.list(panel.clouds).slice(0, CLOUDS).map((cloud) => ({ name: D.words(part(cloud).name, 40), points: D.list(cloud.points).slice(0, POINTS).map(point) })),
    }));
  }

  /** The middle and half the side of the square that holds all points. */
  function frame(points) {
    const ends = [0, 1].map((axis) => { const numbers = points.map((one) => one[axis]); return [Math.min(...numbers), Math.max(...numbers)]; });
    return { middle: ends.map(([low, high]) => (low + high) / 2), half: Math.max(...ends.map(([low, high]) => high - low)) / 2 || 1 };
  }

  D.EXHIBITS.clouds = function (exhibit) {
    const panels = read(exhibit), all = panels.flatMap(({ clouds }) => clouds.flatMap(({ points }) => points));
    D.require(all.length);
    const { middle, half } = frame(all), scale = (SIDE / 2 - EDGE) / half;
    const at = ([x, y]) => [(SIDE / 2 + (x - middle[0]) * scale).toFixed(1), (SIDE / 2 - (y - middle[1]) * scale).toFixed(1)].map(Number);
    const look = (name) => (name === "accepted" || Object.hasOwn(MARKS, name) ? name : null);
    const drawn = ({ name, points }) => D.svg("path", { class: "ds-cloud", "data-status": look(name), d: points.map((one) => (look(name) && MARKS[name] || dot)(...at(one))).join("") });
    const key = ({ name, points }) => D.el("span", {}, D.svg("svg", { width: 12, height: 12, viewBox: "0 0 12 12", "aria-hidden": "true" }, D.svg("path", { class: "ds-cloud", "data-status": look(name), d: (look(name) && MARKS[name] || dot)(6, 6) })), `${name} (${points.length})`);
    const figures = panels.map(({ name, clouds }) => D.el("div", { class: "ds-cloud-panel" }, D.el("p", { class: "ds-cloud-name", text: name }),
      D.svg("svg", { width: SIDE, height: SIDE, viewBox: `0 0 ${SIDE} ${SIDE}`, "aria-hidden": "true" }, D.svg("rect", { class: "ds-cloud-paper", width: SIDE, height: SIDE, rx: 6 }), ...clouds.map(drawn)),
      D.el("p", { class: "ds-quiet ds-cloud-key" }, ...clouds.map(key))));
    const said = panels.map(({ name, clouds }) => `${name}: ${clouds.map((one) => `${D.plural(one.points.length, "point")} ${one.name}`).join(", ")}`);
    return { content: D.el("div", { class: "ds-clouds" }, ...figures), wide: true, summary: `${said.join(". ")}.`, left: exhibit.panels.length > PANELS && "only the first frames are drawn" };
  };
})(globalThis.Draftscope);
