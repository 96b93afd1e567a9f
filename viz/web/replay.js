// The entry of an exported page: replays the trace, or the race, that lies in the page.
import { mountCompare } from "./compare.js";
import { mountWatch } from "./watch.js";

const text = JSON.parse(document.getElementById("trace").textContent);
const element = document.getElementById("view"), { race } = element.dataset;
const wish = new URLSearchParams(location.hash.slice(1)), place = Number(wish.get(race ? "at" : "step"));
const placed = wish.has(race ? "at" : "step") && Number.isFinite(place);
if (wish.has("embed")) document.documentElement.dataset.embed = "1";
const view = (race ? mountCompare : mountWatch)(element, placed ? { autoplay: false } : {});
view.feed(text);
if (placed && race) view.seek(place);
else if (placed) view.goto(place);
globalThis.view = view;
