// Picks one drafter out of many: a field that searches as the reader types, over a list in groups by family.
// The pattern is a combobox with a listbox: the focus stays in the field, aria-activedescendant names the option.
/** @import { PickerSettings } from "./types.d.ts" */
import { offer } from "./offer.js";
import { missingPart } from "./choices.js";
import { plainWords, holds } from "./search.js";
import { clamp, el, freshId, setAttributes } from "../../viz/web/base.js";

const PAGE = 8;          // options that Page Up and Page Down pass over
const FIRST = "To begin with";
const ROOM = 240;        // px that the list wants below the field; with less, it opens above where there is more

/** An entry's distance from the words: 0 where words of its name or key begin so, 1 or 2 elsewhere, else Infinity. */
function distance({ key, title, family, summary }, wanted) {
  const names = plainWords(`${title} ${key} ${key.replaceAll("_", " ")}`), far = plainWords(summary);
  const near = plainWords(`${title} ${key} ${family}`);
  const one = (word) => {
    if (names.some((name) => name.startsWith(word))) return 0;
    if (holds([word], near)) return 1;
    return holds([word], far) ? 2 : Infinity;
  };
  return Math.max(0, ...wanted.map(one));
}

/**
 * settings: id and classes of the element around the field, label (the words before the field; "" for none), name
 * (what is read out in place of a label). chosen(key): called when the reader has picked another drafter.
 * @param {PickerSettings} settings
 * @param {(key: string) => void} chosen
 */
export function makePicker({ id = null, classes = "", label = "", name = null }, chosen) {
  const { drafters, families } = offer;
  const ids = { field: freshId("picker"), list: freshId("picker-list") };
  const list = el("div", { class: "pg-picker-list", role: "listbox", id: ids.list, "aria-label": "Drafters" });
  const foot = el("p", { class: "pg-picker-foot" }), status = el("span", { class: "pg-hidden", role: "status" });
  const pop = el("div", { class: "pg-picker-pop", hidden: true }, list, foot);
  const field = el("input",
    { type: "text", id: ids.field, class: "pg-picker-field", role: "combobox", autocomplete: "off", spellcheck: "false",
      "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": ids.list,
      "aria-label": label ? null : name,
      oninput: () => { open(); search(); }, onclick: () => {
        if (pop.hidden) { field.select(); open(); }
      }, onfocus: () => field.select(), onblur: () => shut(), onkeydown: press });
  const element = el("div", { id, class: `pg-picker ${classes}` }, label
    && el("label", { for: ids.field, text: label }),
    el("div", { class: "pg-picker-box" }, field, pop, status));
  pop.addEventListener("pointerdown", (event) => event.preventDefault());   // the focus stays in the field
  let value = null, entries = null, active = null, models = "";

  function entry(key) {
    const { title, family, summary, word } = drafters[key], missing = missingPart(key, models);
    const option = el("div",
      { role: "option", class: "pg-picker-option", id: freshId("option"), "data-key": key, "aria-selected": "false",
        "aria-disabled": missing ? "true" : null, "aria-label": `${title}, ${missing || word}. ${summary} (${key})`,
        onclick: () => pick(one), onpointermove: () => light(one) },
      el("span", { class: "pg-picker-title", text: title }),
      el("span", { class: "pg-picker-summary", text: missing || summary }),
      el("span", { class: "pg-tag", "data-tag": word, text: word }));
    const one = { key, title, summary, missing, family: families[family] || family, option };
    return one;
  }

  /** Make the options when the list is opened for the first time, and again for other models. */
  function build() {
    if (entries) return;
    const here = offer.first.filter((key) => drafters[key]);
    entries = [...new Set([...here, ...Object.keys(drafters)])].map(entry);
    const group = ({ key, family }) => (here.includes(key) ? FIRST : family);
    const order = [FIRST, ...Object.values(families), ...entries.map(group)];
    for (const family of new Set(order)) {
      const members = entries.filter((one) => group(one) === family);
      if (!members.length) continue;
      const head = el("div", { class: "pg-picker-family", role: "presentation", id: freshId("family"), text: family });
      list.append(el("div", { role: "group", "aria-labelledby": head.id }, head, ...members.map((one) => one.option)));
    }
    entries.sort((a, b) => (a.option.compareDocumentPosition(b.option) & Node.DOCUMENT_POSITION_FOLLOWING ? -1 : 1));
  }

  const seen = () => entries.filter((one) => !one.option.hidden);

  function light(one) {
    if (active) active.option.removeAttribute("data-active");
    active = one || null;
    setAttributes(field, { "aria-activedescendant": active && active.option.id });
    foot.textContent = active ? active.missing || active.summary : "No drafter has these words.";
    if (active) active.option.setAttribute("data-active", "");
  }

  /** Light this entry and bring it into view within the list; the page stays where it is. */
  function reach(one) {
    light(one);
    if (!one) return;
    const { offsetTop: top, offsetHeight: high } = one.option, first = seen()[0] === one;
    list.scrollTop = clamp(list.scrollTop, top + high - list.clientHeight + 6, first ? 0 : top - 34);
  }

  /** Hide the entries without the typed words; light the one that fits them best. */
  function search() {
    const wanted = plainWords(field.value), far = new Map(entries.map((one) => [one, distance(one, wanted)]));
    for (const one of entries) one.option.hidden = far.get(one) === Infinity;
    for (const group of list.children) group.hidden = !group.querySelector("[role=option]:not([hidden])");
    const left = seen(), rank = (one) => far.get(one) + (one.missing ? 0.5 : 0);
    list.scrollTop = 0;
    reach(left.reduce((best, one) => (!best || rank(one) < rank(best) ? one : best), null));
    status.textContent = left.length === 1 ? "1 drafter." : `${left.length} drafters.`;
  }

  function open() {
    if (!pop.hidden) return;
    build();
    for (const one of entries) {
      one.option.hidden = false;
      setAttributes(one.option, { "aria-selected": String(one.key === value) });
    }
    for (const group of list.children) group.hidden = false;
    pop.hidden = false;
    setAttributes(field, { "aria-expanded": "true" });
    place();
    list.scrollTop = 0;
    reach(entries.find((one) => one.key === value) || entries[0]);
  }

  /** Place the list within the window's width, and above the field where there is more room. */
  function place() {
    pop.style.setProperty("--pg-shift", "0px");
    const box = pop.getBoundingClientRect(), wide = document.documentElement.clientWidth;
    const at = field.getBoundingClientRect();
    const below = innerHeight - at.bottom, above = at.top, up = below < ROOM && above > below;
    pop.style.setProperty("--pg-shift", `${Math.min(0, wide - 12 - box.right)}px`);
    pop.style.setProperty("--pg-high", `${Math.max(160, (up ? above : below) - 24)}px`);
    setAttributes(pop, { "data-up": up });
  }

  function shut() {
    if (pop.hidden) { show(); return; }
    pop.hidden = true;
    setAttributes(field, { "aria-expanded": "false", "aria-activedescendant": null });
    status.textContent = "";
    show();
  }

  // a narrow field cuts it
  const show = () => {
    field.value = value === null ? "" : drafters[value].label;
    setAttributes(field, { title: field.value });
  };

  function pick(one) {
    if (one.missing) { status.textContent = one.missing; return; }
    const other = one.key !== value;
    value = one.key;
    shut();
    if (other) chosen(value);
  }

  const KEYS = {
    ArrowDown: (all, at) => all[(at + 1) % all.length],
    ArrowUp: (all, at) => all[(at - 1 + all.length) % all.length],
    PageDown: (all, at) => all[Math.min(at + PAGE, all.length - 1)],
    PageUp: (all, at) => all[Math.max(at - PAGE, 0)],
    Home: (all) => all[0],
    End: (all) => all.at(-1),
  };

  function press(event) {
    const { key } = event, is = pop.hidden;
    if (is && !["ArrowDown", "ArrowUp", "Enter"].includes(key)) return;
    if (key === "Escape") shut();
    else if (is) { open(); field.select(); }
      else if (key === "Enter") { if (active) pick(active); }
      else if (KEYS[key] && seen().length) reach(KEYS[key](seen(), seen().indexOf(active)));
    else return;
    event.preventDefault();
  }

  return {
    element, field,
    /** Show this drafter without calling chosen(). */
    set(key) { value = key; if (pop.hidden) show(); },
    /** Offer the drafters for these models. */
    writes(family) { shut(); models = family; entries = active = null; list.replaceChildren(); },
    rename(text) { setAttributes(field, { "aria-label": text }); },
  };
}
