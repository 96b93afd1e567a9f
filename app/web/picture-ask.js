// The picture that a prompt is about, below the control Model of a family that sees pictures: a scene or a film by its
// number, or one that the visitor brings; a film plays. Its address stands in the prompt as in Markdown, so links,
// files and races hold it, too.
/** @import { Component, Tab } from "./types.d.ts" */
import { onModels } from "./choices.js";
import { el, setAttributes, writeText } from "../../viz/web/base.js";

const FAMILY = "captions", USUAL = "describe the picture. ![](scene:7)", NUMBERS = 1e6;
const PICTURE_WORDS = "describe the picture.", FILM_WORDS = "describe the film.";
const PICTURE = /!\[[^\]\n]*\]\(([^()\s]*)\)/;

/**
 * c.props: prompt: the id of the prompt's box; limit: bytes of a file. c.server.prompt_picture(given): of an address,
 * or of a file as one, {address, image, film} or {error}.
 * @type {(room: Tab, c: Component) => void}
 */
export function pictureAsk(room, c) {
  const { prompt, limit } = c.props;
  const box = () => /** @type {HTMLTextAreaElement} */ (document.querySelector(`#${prompt} textarea`));
  const image = el("img", { class: "pg-asked-picture", alt: "The picture that the prompt is about", hidden: true });
  const drawn = (text, scheme) => el("button", { type: "button", class: "pg-tool", text,
    onclick: () => bring(`${scheme}:${Math.floor(Math.random() * NUMBERS)}`) });
  const file = el("input", { type: "file", accept: "image/png,image/jpeg,image/webp,image/gif,image/bmp",
    class: "pg-file", "aria-label": "A picture or a film to ask about", id: `${prompt}-picture`, tabindex: "-1" });
  const own = el("button",
    { type: "button", class: "pg-tool", text: "Your own picture…", onclick: () => file.click() });
  const problem = el("p", { class: "pg-alarm", role: "alert" });
  const buttons = el("div", {}, drawn("Another scene", "scene"), drawn("Another film", "film"), own, file);
  const whole = el("div", { class: "pg-picture-ask", hidden: true }, image, buttons, problem);
  c.element.append(whole);
  let shown = "", asked = 0;

  const write = (words) => {
    box().value = words;
    box().dispatchEvent(new Event("input", { bubbles: true }));
  };
  const address = () => (PICTURE.exec(box()?.value || "") || [])[1] || "";

  /** Ask the server for a picture; what was asked before and comes later is not shown. */
  async function answerTo(given) {
    const mine = ++asked;
    const answer = await c.server.prompt_picture(given)
      .catch(() => ({ error: "The picture did not come; try again." }));
    if (mine !== asked) return null;
    writeText(problem, answer.error || "");
    setAttributes(image, { src: answer.image || null });
    image.hidden = !answer.image;
    return answer;
  }
  /** Put another picture into the prompt. */
  async function bring(given) {
    const answer = await answerTo(given);
    if (!answer || !answer.address) return;
    shown = answer.address;
    const mark = `![](${answer.address})`;
    const words = answer.film ? box().value.replace(PICTURE_WORDS, FILM_WORDS)
      : box().value.replace(FILM_WORDS, PICTURE_WORDS);
    write(PICTURE.test(words) ? words.replace(PICTURE, mark) : `${words.trim()} ${mark}`.trim());
  }
  /** Show the picture of the prompt as it is now. */
  function follow() {
    const now = address();
    if (whole.hidden || now === shown) return;
    shown = now;
    if (now) { answerTo(now); return; }
    asked++;
    image.hidden = true;
    writeText(problem, "");
  }

  /** The visitor has chosen this family: a question to begin with. */
  function begin() {
    if (!address() && !whole.hidden) write(USUAL);
  }

  file.addEventListener("change", () => {
    const chosen = file.files[0], reader = new FileReader();
    file.value = "";
    if (!chosen) return;
    if (chosen.size > limit) {
      writeText(problem, `That picture is larger than ${Math.round(limit / 1e6)} MB.`);
      return;
    }
    reader.onload = () => bring(reader.result);
    reader.readAsDataURL(chosen);
  });
  let timer = 0;
  const soon = () => { clearTimeout(timer); timer = setTimeout(follow, 200); };
  document.addEventListener("input", soon);
  onModels(room, (family) => {
    const before = whole.hidden;
    whole.hidden = family !== FAMILY;
    if (before && !whole.hidden && box() && !address()) setTimeout(begin, 400);
    soon();
  });
}
