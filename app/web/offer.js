// What the page offers: drafters and rules with their options, families of models. From app/menu.py, with the page.
/** @import { Offer } from "./types.d.ts" */

/**
 * {drafters, rules, families}, by key; first: the drafters to begin with; models: the names of the families of models,
 * chat: of those that converse; machines, engines: what Tune offers.
 * @type {Offer}
 */
export const offer = { drafters: {}, rules: {}, families: {}, first: [], models: [], chat: [], machines: [],
  engines: [] };

/**
 * Take over what the server offers; once, before anything is built.
 * @type {(whole: Partial<Offer>) => void}
 */
export const takeOffer = (whole) => { Object.assign(offer, whole); };
