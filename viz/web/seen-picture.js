// The picture in a prompt, as the target sees it, beside the text; patches that the draft does not see are pale.
/** @import { Run, Step } from "./types.d.ts" */
import { el, setAttributes } from "./base.js";

const PICTURE = / *!\[[^\]\n]*\]\([^()\s]*\)/;
const SHOWN = "Patches that the draft sees";   // the title of the drafters' exhibit, a matrix
const PALE = 0.82;

/**
 * The words of a run's prompt, without the address of its picture.
 * @type {(run: Run) => string}
 */
export const promptWords = (run) => (run.sees ? run.prompt.text.replace(PICTURE, "") : run.prompt.text);

/** {side, patch, bytes: red, green, blue of each pixel}; null where the trace tells of no picture that can be drawn. */
function seenBy(run) {
  const { side, patch, pixels } = (run && run.sees) || {};
  if (!Number.isInteger(side) || side < 1 || side > 256 || !(patch >= 1) || typeof pixels !== "string") return null;
  try {
    const bytes = Uint8Array.from(atob(pixels), (letter) => letter.charCodeAt(0));
    return bytes.length === 3 * side * side ? { side, patch, bytes } : null;
  } catch { return null; }
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
    const { side, patch, bytes } = picture, image = new ImageData(side, side);
    for (let at = 0; at < side * side; at++) {
      const row = Math.floor(at / side / patch), column = Math.floor((at % side) / patch);
      const pale = values && !(values[row] && values[row][column] > 0) ? PALE : 0;
      for (let c = 0; c < 3; c++) image.data[4 * at + c] = bytes[3 * at + c] * (1 - pale) + 255 * pale;
      image.data[4 * at + 3] = 255;
    }
    canvas.getContext("2d").putImageData(image, 0, 0);
    setAttributes(canvas, { "aria-label": "The picture that the target sees" +
      (values ? "; pale where the draft does not see it" : "") });
  }

  return {
    /** @type {(run: Run | null) => void} */
    reset(run) {
      picture = seenBy(run); drawn = undefined;
      canvas.hidden = !picture;
      if (picture) canvas.width = canvas.height = picture.side;
      draw(null);
    },
    /** @type {(step: Step | undefined) => void} */
    draw: (step) => draw(seenOf(step)),
  };
}
