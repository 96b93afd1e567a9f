// What the page offers: drafters and rules with their options, families of models. From app/menu.py, with the page.

/** {drafters, rules, families, models}, by key. */
export const offer = {};

/** Take over what the server offers; once, before anything is built. */
export const takeOffer = (whole) => Object.assign(offer, whole);
