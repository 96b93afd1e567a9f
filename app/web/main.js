// The entry of the page: what gradio's components and events call, and what is asked from outside, by name.
import { controls } from "./agreement.js";
import { watchServer } from "./alive.js";
import { allowed } from "./allowed.js";
import { hearNumbers } from "./bounds.js";
import { canvas } from "./canvas.js";
import { cards } from "./cards.js";
import { change } from "./change.js";
import { agrees } from "./differences.js";
import { figuresOf, graphml, proofPart } from "./figures.js";
import { hearHistory, moved, openRoom } from "./history.js";
import { lanes } from "./lanes.js";
import { learn } from "./learn.js";
import { foot, masthead } from "./masthead.js";
import { methods } from "./methods.js";
import { modelNote } from "./model-note.js";
import { answered } from "./newest.js";
import { takeOffer } from "./offer.js";
import { ownModels } from "./own-models.js";
import { pair } from "./pair.js";
import { pictureAsk } from "./picture-ask.js";
import { hearPrompts } from "./prompt-box.js";
import { recorded } from "./recorded.js";
import { exampleShown, happen, messageOf, ranHere, stateOf, traceOf, viewOf } from "./rooms.js";
import { link, raceTools, tools } from "./rows.js";
import { hearButtons, over, status } from "./run.js";
import { terms } from "./terms.js";
import { tuneAsk } from "./tune-ask.js";
import { tuneTools } from "./tune.js";
import { exampleNote, whose } from "./whose.js";
import { tellingStep } from "../../viz/web/player.js";

globalThis.DraftscopePage = {
  takeOffer,
  // what a component builds when it is loaded
  allowed, canvas, cards, change, exampleNote, figuresOf, foot, graphml, lanes, learn, masthead, methods, modelNote,
  ownModels, pair, pictureAsk, proof: proofPart, raceTools, recorded, status, terms, tools, tuneAsk, tuneTools,
  // what an event of gradio tells
  answered, controls, link, openRoom, moved, over, whose,
  // what is known of a tab, by its name
  agrees, exampleShown, happen, messageOf, ranHere, stateOf, tellingStep, trace: traceOf, view: viewOf,
};
hearButtons();
hearNumbers();
hearPrompts();
hearHistory();
watchServer();
