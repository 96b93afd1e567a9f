// The lines of a tuning record, and what is drawn of them. For the type checker alone; nothing of this goes to a browser.

export interface CostLine {
  kind: "cost";
  what: "target" | "draft";
  rows: number;
  texts: number;
  context: number | null;
  milliseconds: number;
}

export interface Position {
  position: number;
  /** null where the source does not say. */
  reached: number | null;
  accepted: number;
}

export interface AcceptanceLine {
  kind: "acceptance";
  drafter: string;
  options: Record<string, any>;
  size: number | null;
  prompt_kind: string;
  positions: Position[];
  /** Counts of all texts; null where the source does not say. */
  prompts: number | null;
  steps: number | null;
  drafted: number | null;
  accepted: number | null;
  new_tokens: number | null;
  /** What another engine's record does not tell, in a sentence; and the numbers that it states without counts. */
  lacks: string;
  stated: Record<string, any>;
}

/** What the five numbers are worked out from. */
export type Counts = Partial<Pick<AcceptanceLine, "positions" | "steps" | "drafted" | "accepted" | "new_tokens" |
  "stated">>;

/** A drafter with a size, over so many texts at once. machine: of an estimate alone. */
export interface SettingLine {
  kind: "setting" | "estimate";
  drafter: string;
  options: Record<string, any>;
  size: number;
  verifier: string;
  lossless: boolean | null;
  texts: number;
  predicted: number | null;
  checked: number | null;
  plain: number | null;
  ratio: number;
  machine: string;
  /** On how many it was tried; null where the record does not say. */
  prompts: number | null;
}

export interface WatchWish {
  drafter: string;
  options: Record<string, any>;
  verifier?: string;
  prompt?: string;
  temperature?: number;
  seed?: number;
}

export interface AnswerLine {
  kind: "answer";
  sentence: string;
  drafter: string;
  size: number | null;
  verifier: string;
  ratio: number | null;
  off_above: number | null;
  /** Where nothing pays: the drafter that came nearest. */
  best_tried: string;
  why: { cause: string; sentence: string } | null;
  preset_link: WatchWish | null;
}

export interface ProgressLine {
  done: number;
  seconds_left: number | null;
  doing: string;
}

/** What a record holds so far. */
export interface TuningRecord {
  head: Record<string, any> | null;
  cost: CostLine[];
  acceptance: AcceptanceLine[];
  setting: SettingLine[];
  estimate: SettingLine[];
  answer: AnswerLine | null;
  progress: ProgressLine | null;
  /** Lines that are none of a record, or that could not be read. */
  unread: number;
}

/** Settings as a table of cells; null where nothing was measured. */
export interface Grid {
  rows: number[];
  columns: (string | number)[];
  cells: (SettingLine | null)[][];
}

export interface NumbersTable {
  columns: string[];
  rows: (string | number | null | Element)[][];
}

/** A figure that can be saved. table: its numbers, by columns and rows. */
export interface TuneFigure {
  key: string;
  title: string;
  note: string;
  svg: SVGSVGElement;
  body: Element;
  /** What moves the choice of a cell, and the line that tells it. */
  keys?: (event: KeyboardEvent) => void;
  readout?: Element;
  /** For screen readers. */
  summary: string;
  table: NumbersTable;
}

/** What the drawing asks of the page around it. */
export interface TuneHost {
  /** The name of a drafter in words. */
  title(key: string): string;
  /** A link to the run on Watch, step by step; null where there can be none. */
  watch(wish: WatchWish, words: string): Element | null;
  /**
   * The setting as another engine takes it: {text, synthetic, notes, differs, measured}, the texts "" where the engine cannot
   * express it, or {error}. synthetic: with our acceptance in the place of the drafter's. differs: what
   * differs from the answer, and why. measured: with which models, and how fast it was there.
   */
  exported(engine: string): Promise<{ text?: string; synthetic?: string; notes?: string[]; differs?: string;
    measured?: string; error?: string }>;
  /** The estimates on another machine: {lines} or {error}. */
  estimated(wish: { machine?: string; costs?: string }): Promise<{ lines?: string; error?: string }>;
  /** The five numbers of these counts: {numbers} or {error}. */
  five(counts: Counts): Promise<{ numbers?: FiveNumber[]; error?: string }>;
  machines: string[];
  engines: [string, string][];
}

/** value: in words; "" where the counts do not give it. */
export interface FiveNumber {
  title: string;
  formula: string;
  value: string;
  means: string;
  printed_by: string;
}
