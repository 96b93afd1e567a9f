// What the page's own code is about: what the server offers, the controls of a tab, and what is known of its run.
// For the type checker alone; nothing of this goes to a browser.
import type { Run, Summary, Turn } from "../../viz/web/types.d.ts";
import type { State, View } from "../../viz/web/view-types.d.ts";

export type Tab = "watch" | "compare" | "learn" | "tune";

/** What gr.HTML hands to a component of the page. */
export interface Component {
  element: HTMLElement;
  /** value, and what the server gave with it. */
  props: any;
  /** Tell the server of an event. */
  trigger(event: string, data?: object): void;
  /** Call back when a property has changed. */
  watch(property: string, hear: () => void): void;
  /** Functions of the server. */
  server: Record<string, (...values: any[]) => Promise<any>>;
}

/** An option as a drafter or a rule declares it. */
export interface Option {
  name: string;
  type: "int" | "float" | "bool" | "choice";
  default: number | string | boolean;
  help: string;
  minimum: number | null;
  maximum: number | null;
  choices?: string[];
  label?: string;
  /** 0 leaves the number to the machine. */
  auto?: boolean;
  advanced?: boolean;
  only?: "sampled" | "greedy";
  depends_on?: [string, number | string | boolean];
  /** The role of the part that it chooses. */
  part?: string;
  /** Choices in words. */
  said?: Record<string, string>;
}

export interface OfferedDrafter {
  label: string;
  title: string;
  family: string;
  summary: string;
  word: string;
  /** Why it cannot run here, and with other families of models; "" where it can. */
  missing: string;
  elsewhere?: Record<string, string>;
  options: Option[];
  /** What each rule means with it, by the rule's key. */
  rules: Record<string, string>;
  /** The rule that judges unless another is chosen: at temperature 0, and above. */
  automatic: { cold: string; warm: string };
  learns?: boolean;
}

export interface Offer {
  drafters: Record<string, OfferedDrafter>;
  rules: Record<string, { title: string; summary: string; options: Option[]; learns: boolean }>;
  families: Record<string, string>;
  /** The keys of the drafters that the menu lists first. */
  first: string[];
  models: string[];
  chat: string[];
  /** Of Tune: machines for estimates, and engines that take a setting, with their names. */
  machines: string[];
  engines: [string, string][];
}

/** A drafter and a rule with their options; verifier: "" for the automatic one. */
export interface Pair {
  drafter: string;
  options?: Record<string, any>;
  verifier?: string;
  rule_options?: Record<string, any>;
}

/** The controls of a tab by name. pair and lanes are JSON: a Pair, or a list of them. */
export interface Settings {
  prompt?: string;
  pair?: string;
  lanes?: string;
  /** JSON: a TunePrompts. */
  prompts?: string;
  heal?: boolean;
  json_schema?: string;
  python_names?: boolean;
  temperature?: number;
  top_k?: number;
  top_p?: number;
  seed?: number;
  max_new_tokens?: number;
  models?: string;
}

/** The prompts of a tuning: of this page by kind, pasted, or of a file. */
export interface TunePrompts {
  source: "ours" | "pasted" | "file";
  kinds: string[];
  text: string;
  name: string;
  /** Whether every drafter that can run is tried, not only the usual ones. */
  all: boolean;
}

export interface Example extends Settings {
  look_for: string;
  listed: boolean;
  /** What was said before the prompt; Compare's examples have none. */
  turns?: Turn[];
}

/** The state of a run; see run-state.js. */
export interface RunState {
  state: State;
  message: string;
  unheard: boolean;
  wish: "ask_stop" | "ask_pause" | null;
}

export interface RunEvent {
  kind: "begun" | "wished" | "reported" | "ended" | "failed" | "said" | "calmed" | "cleared";
  state?: State;
  message?: string;
  wish?: "ask_stop" | "ask_pause";
  whole?: boolean;
}

/** What is known of a tab; see rooms.js. */
export interface Room {
  view: View | null;
  trace: string;
  run: RunState;
  trigger: ((event: string, data?: object) => void) | null;
  events: number;
  ran: boolean;
  mine: string;
  now: Settings | null;
  came: boolean;
  asked: Settings | null;
  own: string | null;
  /** What the record of Tune was made of, as text. */
  made?: string;
  cover?: string;
  example: string | undefined;
  heard: (() => void)[];
}

export interface Conversation {
  chat: boolean;
  system: string;
  turns: Turn[];
  stop: string[];
}

/** The visitor's own models; missing: why drafters cannot run with them, by key. */
export interface OwnModels {
  loaded: { target: string; draft: string } | null;
  missing: Record<string, string>;
}

/** A box of the window, in px. */
export interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

export interface Size {
  width: number;
  height: number;
}

/** A run of a trace, or a lane of a race, as far as it has come. */
export interface TracedRun {
  run: Run;
  summary?: Summary;
}

export interface PickerSettings {
  id?: string | null;
  classes?: string;
  /** The words before the field; "" for none, then name is read out. */
  label?: string;
  name?: string | null;
}
