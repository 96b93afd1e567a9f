// What can be chosen in a tab: it depends on its temperature, its family of models, and the visitor's own pair.
/** @import { Option, OwnModels, Tab } from "./types.d.ts" */
import { offer } from "./offer.js";

/**
 * A setting of each tab that its pairs follow. follow(tab, hear) calls hear(value) when the setting changes, and once
 * now, and returns a function that ends this.
 */
function shared(first) {
  const tabs = {}, of = (tab) => (tabs[tab] = tabs[tab] || { value: first, heard: new Set() });
  return {
    set(tab, value) { of(tab).value = value; of(tab).heard.forEach((hear) => hear(value)); },
    again() { for (const one of Object.values(tabs)) one.heard.forEach((hear) => hear(one.value)); },
    follow(tab, hear) { of(tab).heard.add(hear); hear(of(tab).value); return () => of(tab).heard.delete(hear); },
  };
}
const temperatures = shared(0), families = shared("");
/**
 * Set the tab's temperature; its controls show the options that have an effect there.
 * @type {(tab: Tab, given: number | string) => void}
 */
export const setTemperature = (tab, given) => temperatures.set(tab, Number(given) || 0);
/** @type {(tab: Tab, hear: (temperature: number) => void) => () => void} */
export const onTemperature = temperatures.follow;
/**
 * Set the tab's family of models, "" for text; drafters that lack a part in it cannot be chosen.
 * @type {(tab: Tab, name: string) => void}
 */
export const setModels = (tab, name) => families.set(tab, name || "");
/** @type {(tab: Tab, hear: (family: string) => void) => () => void} */
export const onModels = families.follow;

let own = null;   // the visitor's own pair: {loaded, missing}

/**
 * Take over what is loaded for the visitor: {loaded: the pair or null, missing: why drafters cannot run with it, by
 * key}.
 * @type {(own: OwnModels) => void}
 */
export function setOwnPair({ loaded, missing }) {
  const before = ownPair();
  own = loaded ? { loaded, missing } : null;
  if (ownPair() !== before) families.again();
}

/**
 * The visitor's own pair as a text, "" without one.
 * @type {() => string}
 */
export const ownPair = () => (own ? JSON.stringify([own.loaded.target, own.loaded.draft]) : "");
/**
 * The name of the visitor's own target, "" without one.
 * @type {() => string}
 */
export const ownTarget = () => (own ? own.loaded.target : "");
/**
 * Why a drafter cannot run with this family of models, or with the visitor's own pair; "" where it can.
 * @type {(drafter: string, family: string) => string}
 */
export function missingPart(drafter, family) {
  const { missing, elsewhere = {} } = offer.drafters[drafter];
  if (family) return elsewhere[family] || "";
  return own ? own.missing[drafter] || "" : missing;
}

/**
 * A drafter's options here; an own pair has one draft, so no other can be chosen.
 * @type {(drafter: string, family: string) => Option[]}
 */
export const declaredOptions = (drafter, family) =>
  offer.drafters[drafter].options.filter(({ part }) => !part || family || !own);

/**
 * The rule that judges unless another is chosen.
 * @type {(drafter: string, temperature: number) => string}
 */
export const automaticRule = (drafter, temperature) =>
  offer.drafters[drafter].automatic[temperature > 0 ? "warm" : "cold"];
