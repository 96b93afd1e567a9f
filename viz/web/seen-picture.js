// The picture in a prompt, as the target sees it, beside the text, or the frames of a film in a row above it; patches
// that the draft does not see are pale.
/** @import { Run, Step } from "./types.d.ts" */
import { el, setAttributes } from "./base.js";

const PICTURE = / *!\[[^\]\n]*\]\([^()\s]*\)/;
const SHOWN = "Patches that the draft sees";   // the title of the drafters' exhibit, a matrix
const PALE = 0.82, GAP = 3, MOST = 64;

/**
 * The words of a run's prompt, without the address of its picture.
 * @type {(run: Run) => string}
 */
export const promptWords = (run) => (run.sees ? run.prompt.text.replace(PICTURE, "") : run.prompt.text);

const whole = (value, low, high) => Number.isInteger(value) && value >= low && value <= high;

/**
 * {side, patch, frames, bytes, at: where in bytes a pixel of a frame begins, by its row and column}; null where the
 * trace tells of no picture that can be drawn. The values are checked: a trace may come from a stranger.
 */
function seenBy(run) {
  const { side, patch, pixels, frames = 1, order } = (run && run.sees) || {};
  if (!whole(side, 1, 256) || !whole(patch, 1, side) || !whole(frames, 1, MOST)) return null;
  if (typeof pixels !== "string") return null;
  let bytes;
  try { bytes = Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0)); } catch { return null; }
  if (!order) return frames === 1 && bytes.length === 3 * side * side
    ? { side, patch, frames, bytes, at: (_, y, x) => 3 * (y * side + x) } : null;
  const across = side / patch, known = bytes.length / (3 * patch * patch);
  if (!Array.isArray(order) || order.length !== frames * across * across) return null;
  if (!order.every((place) => whole(place, 0, known - 1))) return null;
  return { side, patch, frames, bytes, at: (frame, y, x) => {
    const place = order[(frame * across + Math.floor(y / patch)) * across + Math.floor(x / patch)];
    return 3 * ((place * patch + y % patch) * patch + x % patch);
  } };
}

/** The matrix of a step that says which patches its draft sees; null where none does. */
function seenOf(step) {
  const all = step && step.drafter && Array.isArray(step.drafter.exhibits) ? step.drafter.exhibits : [];
  const found = all.find((one) => one && one.kind === "matrix" && one.title === SHOWN);
  return found && Array.isArray(found.values) ? found.values : null;
}

/**
 * @param {HTMLElement} box of the text; the picture stands in its corner
 */
export function seenPicture(box) {
  const canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { class: "ds-seen", role: "img", hidden: true }));
  box.prepend(canvas);
  let picture = null, drawn = undefined;

  function draw(values) {
    if (!picture || values === drawn) return;
    drawn = values;
    const { side, patch, frames, bytes, at } = picture, across = Math.floor(side / patch);
    for (let frame = 0; frame < frames; frame++) {
      const image = new ImageData(side, side);
      for (let y = 0; y < side; y++) for (let x = 0; x < side; x++) {
        const row = Math.floor(y / patch), column = Math.floor(x / patch);
        const to = 4 * (y * side + x), from = at(frame, y, x);
        const line = values && values[frames > 1 ? frame : row];     // a film's matrix has a row for each frame
        const pale = values && !(line && line[frames > 1 ? row * across + column : column] > 0) ? PALE : 0;
        for (let c = 0; c < 3; c++) image.data[to + c] = bytes[from + c] * (1 - pale) + 255 * pale;
        image.data[to + 3] = 255;
      }
      canvas.getContext("2d").putImageData(image, frame * (side + GAP), 0);
    }
    setAttributes(canvas, { "aria-label": `The ${frames > 1 ? "film" : "picture"} that the target sees` +
      (values ? "; pale where the draft does not see it" : "") });
  }

  return {
    /** @type {(run: Run | null) => void} */
    reset(run) {
      picture = seenBy(run); drawn = undefined;
      canvas.hidden = !picture;
      const { side = 1, frames = 1 } = picture || {};
      canvas.width = frames * (side + GAP) - GAP;
      canvas.height = side;
      canvas.toggleAttribute("data-film", frames > 1);
      draw(null);
    },
    /** @type {(step: Step | undefined) => void} */
    draw: (step) => draw(seenOf(step)),
  };
}
