// Tokens that are patches of a picture: their description in the run line, one patch as pixels, the growing picture.
/** @import { Run } from "./types.d.ts" */
import { el, setAttributes, svgEl } from "./base.js";
import { seenPicture } from "./seen-picture.js";
import { textStrip } from "./text.js";
import { visible, written } from "./words.js";

const whole = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;

/**
 * {columns, rows, patch, levels, first, count} of a run whose tokens make a picture, else null. The values are
 * checked, because a trace may come from a stranger.
 * @type {(run: Run | null) => any}
 */
export function pictureOf(run) {
  const given = run && run.picture;
  if (!given || !whole(given.patch, 1, 8) || !whole(given.levels, 2, 256) || !whole(given.first, 0, 1e9)) return null;
  if (!whole(given.width, given.patch, 256) || !whole(given.height, given.patch, 256)) return null;
  const { patch, levels, first } = given;
  return { columns: Math.floor(given.width / patch), rows: Math.floor(given.height / patch), patch, levels, first,
    count: levels ** (patch * patch) };
}

/**
 * {side, levels, pixels} of a token, pixels row by row, 0 for blank paper; null for a token that is no patch.
 * @type {(run: Run | null, token: number) => any}
 */
export function patchOf(run, token) {
  const picture = pictureOf(run);
  if (!picture || !Number.isInteger(token)) return null;
  let rest = token - picture.first;
  if (rest < 0 || rest >= picture.count) return null;
  const pixels = [];
  for (let i = 0; i < picture.patch ** 2; i++) {
    pixels.unshift(rest % picture.levels);
    rest = Math.floor(rest / picture.levels);
  }
  return { side: picture.patch, levels: picture.levels, pixels };
}

/**
 * Fill a <g> with the pixels of a patch, each 1 by 1: one path per level of grey.
 * @type {(g: Element, patch: { side: number, levels: number, pixels: number[] }) => void}
 */
export function drawPatch(g, { side, levels, pixels }) {
  const inks = new Map();
  pixels.forEach((level, i) => {
    if (level) inks.set(level, `${inks.get(level) || ""}M${i % side} ${Math.floor(i / side)}h1v1h-1z`);
  });
  g.replaceChildren(svgEl("rect", { class: "ds-paper", width: side, height: side }),
    ...[...inks].map(([level, d]) => svgEl("path",
      { class: "ds-ink", d, "fill-opacity": (level / (levels - 1)).toFixed(3) })));
}

/**
 * A patch as an <svg> of its own.
 * @type {(patch: any, attributes?: object) => Element}
 */
export function patchIcon(patch, attributes) {
  const g = svgEl("g", {});
  drawPatch(g, patch);
  return svgEl("svg", { class: "ds-patch", viewBox: `0 0 ${patch.side} ${patch.side}`, "aria-hidden": "true",
    ...attributes }, g);
}

/** The first drafted node of each depth greater than `beyond`, one for each place after the text: [{node, depth}]. */
function ahead(step, beyond) {
  const first = new Map();
  step.nodes.depth.forEach((depth, node) => { if (depth > beyond && !first.has(depth)) first.set(depth, node); });
  return [...first].map(([depth, node]) => ({ depth, node }));
}

/**
 * The picture, with the functions of textStrip. It stands in the box of the text, whose listeners also handle
 * clicks and hovering on the picture. Written tokens have the line of their status; a refused guess is a small patch
 * in the corner of the patch that replaced it; guesses ahead are faint.
 */
function pictureStrip(box, hooks) {
  const grid = el("div",
    { class: "ds-picture", role: "listbox", "aria-label": "Picture, patch by patch", hidden: true });
  const rest = el("p", { class: "ds-picture-rest", hidden: true });
  box.append(grid, rest);
  let run = null, picture = null, cells = [], ghosts = [], shown = 0, given = 0, focusable = null, standing = [];
  let hovered = [], refused = null;

  grid.addEventListener("keydown", (event) => {
    const cell = event.target.closest("[data-index]");
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!cell || !(by || event.key === "Enter")) return;
    event.preventDefault(); event.stopPropagation();
    if (by) rove(Number(cell.dataset.index) + by, true); else hooks.onPick(Number(cell.dataset.index));
  });

  function rove(index, focus) {
    if (!cells[index] || index >= shown) return;
    if (focusable) focusable.tabIndex = -1;
    focusable = cells[index];
    focusable.tabIndex = 0;
    if (focus) focusable.focus();
  }

  const face = (token, piece) => {
    const patch = patchOf(run, token);
    return patch ? patchIcon(patch) : el("span", { text: written(piece) });
  };
  const where = (index) => {
    const at = given + index;
    return `row ${Math.floor(at / picture.columns) + 1}, column ${(at % picture.columns) + 1}`;
  };

  function make(token, piece, status, look, step) {
    const index = cells.length, patch = patchOf(run, token);
    const kind = look === "plain" ? "written by the target" : status;
    cells.push(el("span", { class: "ds-token ds-place", role: "option", "aria-selected": "false", tabindex: -1,
      "data-index": index, "data-status": status, "data-look": look === status ? null : look, "data-from-step": step,
      "data-outside": !patch, "aria-label": `${patch ? where(index) : visible(piece)}, ${kind}, step ${step + 1}` },
      face(token, piece)));
  }

  function prepare(model, want) {
    for (let s = cells.length ? model.stepOfIndex(cells.length) : 0; cells.length < want; s++) {
      const step = model.steps[s];
      for (let j = cells.length - step.view.firstIndex; j < step.view.tokens; j++)
        make(step.output.tokens[j], step.output.pieces[j], model.outputStatus(step, j), model.outputLook(step, j), s);
    }
  }

  function extend(want) {
    for (; shown > want; shown--) cells[shown - 1].remove();
    for (; shown < want; shown++) (cells[shown].hasAttribute("data-outside") ? rest : grid).append(cells[shown]);
    rest.hidden = !rest.children.length;
  }

  /** The guesses of this step that are not in the picture. open: their verdicts are still to come. */
  function guess(step, open) {
    for (const ghost of ghosts) ghost.remove();
    if (refused) refused.remove();
    ghosts = []; refused = null;
    if (!step) return;
    const { nodes, view } = step, from = given + view.firstIndex;
    for (const { depth, node } of ahead(step, open ? 0 : view.tokens)) {
      const patch = patchOf(run, nodes.token[node]);
      if (!patch || from + depth > picture.columns * picture.rows) break;
      ghosts.push(el("span", { class: "ds-place ds-ghost-place", "data-guess": node, "data-status": open ? null
        : nodes.status[node], "aria-hidden": "true" }, patchIcon(patch)));
    }
    grid.append(...ghosts);
    const no = open || !view.final ? -1 : nodes.status.indexOf("rejected");
    const patch = no >= 0 && patchOf(run, nodes.token[no]);
    const place = cells[view.firstIndex + view.tokens - 1];
    if (patch && place && nodes.depth[no] === view.tokens)
      place.append(refused = patchIcon(patch, { class: "ds-patch ds-refused", "data-refused": no }));
  }

  function stand(from, to) {
    for (const cell of standing) setAttributes(cell, { "data-now": null, "aria-selected": "false" });
    standing = cells.slice(from, to);
    for (const cell of standing) setAttributes(cell, { "data-now": "", "aria-selected": "true" });
  }

  return {
    reset(next) {
      run = next; picture = pictureOf(next);
      grid.hidden = !picture;
      grid.replaceChildren(); rest.replaceChildren();
      cells = []; ghosts = []; standing = []; hovered = []; focusable = refused = null; shown = given = 0;
      rest.hidden = true;
      if (!picture) return;
      grid.style.setProperty("--columns", picture.columns);
      grid.style.setProperty("--rows", picture.rows);
      const { tokens, pieces } = run.prompt;
      let start = tokens.length;
      while (start && patchOf(run, tokens[start - 1])) start--;      // a prompt may begin the picture
      given = tokens.length - start;
      grid.append(...tokens.slice(start)
        .map((token, i) => el("span", { class: "ds-place", "aria-hidden": "true" }, face(token, pieces[start + i]))));
    },
    draw(model, steps, now) {
      const last = model.steps[steps - 1], want = last ? last.view.firstIndex + last.view.tokens : 0;
      guess(null);
      prepare(model, want);
      extend(want);
      const step = model.steps[now], done = step && now < steps;
      guess(step, !done);
      stand(done ? step.view.firstIndex : 0, done ? step.view.firstIndex + step.view.tokens : 0);
      if (shown && (!focusable || !focusable.isConnected)) rove(0, false);
    },
    newest: () => null,
    scroll() {},
    differ(index) { for (const [i, cell] of cells.entries()) setAttributes(cell, { "data-differs": i === index }); },
    hover(index, count) {
      for (const cell of hovered) cell.removeAttribute("data-hover");
      hovered = index === null ? [] : cells.slice(index, Math.min(index + count, shown));
      for (const cell of hovered) cell.setAttribute("data-hover", "");
    },
    element: (index) => (index < shown && cells[index]) || null,
  };
}

/**
 * What a run writes: a text, or a picture below its prompt.
 * @param {HTMLElement} box
 * @param {any} hooks
 */
export function output(box, hooks) {
  const text = textStrip(box, hooks), picture = pictureStrip(box, hooks), seen = seenPicture(box);
  let now = text;
  return {
    reset(run) {
      now = pictureOf(run) ? picture : text;
      for (const place of [box, box.closest(".ds-room, .ds-lane-words")]) if (place)
        setAttributes(place, { "data-picture": now === picture });
      text.reset(run); picture.reset(run); seen.reset(run);
    },
    draw(model, steps, at) { now.draw(model, steps, at); seen.draw(model.steps[at]); },
    newest: () => now.newest(), scroll: (top) => now.scroll(top),
    differ: (index) => now.differ(index),
    hover: (...given) => now.hover(...given), element: (index) => now.element(index),
  };
}
