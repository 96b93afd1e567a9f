// The lines of a trace, as engine/trace/schema.json describes them, and what drawing adds to them. For the type
// checker alone; nothing of this goes to a browser.

export type Probability = number | null;
export type Status = "accepted" | "rejected" | "ignored";
/** How the last token of a step came to be, and how it looks: where nothing was drafted, a bonus looks plain. */
export type FinalKind = "bonus" | "recovered" | "none";
/** A node of a step's tree: its index, -1 for the root, "final" for the last token; null for none. */
export type NodeRef = number | "final" | null;
export type Options = Record<string, number | string | boolean | null>;
/** The likeliest tokens of a place: [token, piece, probability]. */
export type Few = [number, string, number][];

export interface Drafter {
  key: string;
  title?: string;
  family: string;
  options: Options;
  /** The parts that it drafts with: name by role. */
  parts?: Record<string, string>;
  /** The names of options in words. */
  labels?: Record<string, string>;
}

export interface Verifier {
  key: string;
  title?: string;
  lossless: boolean;
  law?: string;
  up_to_rounding?: boolean;
  options?: Options;
  /** The rule's own sentences: templates by name. */
  sentences?: Record<string, string>;
}

export interface Sampling {
  temperature: number;
  top_k: number;
  top_p: number;
  seed: number;
}

export interface Turn {
  role: string;
  content: string;
}

/** The first line of a trace. */
export interface Run {
  kind: "run";
  lane?: string;
  /** known: behind a serving engine, which tells p of so many tokens only, besides the drafted ones. */
  target: { name: string; parameters: number; end_tokens?: number[]; known?: number };
  drafter: Drafter;
  verifier: Verifier;
  sampling: Sampling;
  prompt: { text: string; tokens: number[]; pieces: string[]; messages?: Turn[] };
  /** Where a serving engine wrote the trace: the engine, and the request's id there. */
  recorded?: { engine: string; request: string; began: string };
  /** The embedded family of models; none for text. */
  family?: string;
  stop_strings?: string[];
  /** law: which law an exact rule keeps under the constraint. */
  constraint?: { key: string; text: string; law?: string };
  /** How tokens are patches of a picture, where the target writes one. */
  picture?: any;
  /** The picture in the prompt, as the target sees it. */
  sees?: any;
}

/** The drafted tokens of a step, each list by node; a parent stands before its children. */
export interface Nodes {
  token: number[];
  piece: string[];
  parent: number[];
  depth: number[];
  q: Probability[];
  p: Probability[];
  status: Status[];
  source: string[];
}

export interface Judgement {
  node: number;
  rule: string;
  p: Probability;
  q: Probability;
  accept: number;
  coin: number | null;
}

/** A judgement as a step's view keeps it: order: its place among all of the step. */
export interface Verdict extends Judgement {
  order: number;
  kept: boolean;
}

export interface Distribution {
  node: number;
  p: Few;
  q: Few;
  residual?: Few;
}

/** A span of work on a real clock, in ms since the run began. */
export interface Span {
  lane: string;
  what: string;
  start: number;
  end: number;
}

/** Data that a method shows of a step; the other fields depend on the kind, and are checked where it is drawn. */
export interface Exhibit {
  kind: string;
  title?: string;
  note?: string;
  meter?: boolean;
  [field: string]: any;
}

export interface StageTimes {
  draft?: number;
  verify?: number;
  judge?: number;
  commit?: number;
  prefill?: number;
  total?: number;
}

export interface Final {
  token: number;
  piece?: string;
  kind: FinalKind;
  look?: string;
  parent: number;
}

/** What drawing needs of a step beyond the trace; added once, when the step arrives. */
export interface StepView {
  run: Run | null;
  /** How many nodes were drafted. */
  count: number;
  children: Map<number, number[]>;
  /** The kept nodes, from the root on. */
  path: number[];
  judged: Map<number, Verdict[]>;
  final: Final | null;
  /** The index in the text of the first token that the step wrote, and how many it wrote. */
  firstIndex: number;
  tokens: number;
  distributions: Map<number, Distribution>;
  /** Milliseconds: of all stages together, and on the clock. */
  work: number;
  total: number;
  /** The token that the tree grows from. */
  root?: number;
  /** Whether the run ended after this step because all tokens that were asked for were written. */
  isLast?: boolean;
  /** Milliseconds of the run before this step, and passes of the target up to it. */
  start?: number;
  passes?: number;
}

/** A line of a trace for each step, with its view. */
export interface Step {
  kind: "step";
  lane?: string;
  index: number;
  position: number;
  nodes: Nodes;
  judgements: Judgement[];
  output: { tokens: number[]; pieces: string[]; final: FinalKind };
  distributions?: Distribution[];
  milliseconds?: StageTimes;
  spans?: Span[];
  drafter?: { exhibits?: Exhibit[] };
  passes?: Record<string, number>;
  view: StepView;
}

/** The last line of a trace. */
export interface Summary {
  kind: "summary";
  lane?: string;
  new_tokens: number;
  steps: number;
  target_calls: number;
  mean_accepted: number;
  acceptance_rate: number | null;
  milliseconds: StageTimes;
  tokens_per_second: number;
  stop: "eos" | "stop" | "length" | "context" | "cancelled" | "error";
  text: string;
}
