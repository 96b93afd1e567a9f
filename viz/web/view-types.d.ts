// What draws a trace, and what it asks of the page around it. For the type checker alone, as types.d.ts.
import type { TuningRecord } from "./tune/types.d.ts";
import type { NodeRef } from "./types.d.ts";

export type Model = ReturnType<typeof import("./trace.js").traceModel>;
export type Glossary = ReturnType<typeof import("./glossary.js").makeGlossary>;
export type Player = ReturnType<typeof import("./player.js").makePlayer>;

/** Which part of a step is shown while it is played; null: all of it. */
export type Stage = "draft" | "judge" | "commit" | null;
export type State = "idle" | "running" | "paused" | "done" | "error";

/** What is drawn in a page: text goes in, and its state. */
export interface View {
  feed(text: string | Record<string, string>): void;
  setState(state: State, message?: string, lane?: string): void;
  destroy?(): void;
  playing?: boolean;
  /** The step shown, and the node that the reader chose. */
  step?: number;
  chosen?: NodeRef;
  model?: Model;
  goto?(step: number): void;
  select?(node: NodeRef): void;
  cover?(element: Element | null, running: boolean): void;
  prove?(checked: Checked | null, measuring?: boolean): void;
  /** Whether the controls ask for another tuning than the one that is drawn. */
  outdate?(differs: boolean): void;
  /** What the text of a tuning tells. */
  record?(): TuningRecord;
  feedFirst?(text: string, options?: { elsewhere?: boolean }): void;
}

/** What comparing a run with plain decoding on the same prompt told. */
export interface Checked {
  alike?: boolean | null;
  comparable?: boolean;
  tokens?: number;
  index?: number | null;
  /** null while it is measured, and where it was not. */
  speed?: Speed | null;
}

/** How fast a run is against plain decoding: milliseconds per token of plain decoding, divided by those of the run. */
export interface Speed {
  /** The median of several rounds, and the range of their middle half. */
  ratio: number;
  low: number;
  high: number;
  rounds: number;
  /** Milliseconds of a step's draft and of its pass over so many rows, and of a pass over one row. */
  draft: number;
  verify: number;
  rows: number;
  one: number;
  gpu: { machine: string; ratio: number } | null;
  /** The processor of the machine on which an example was recorded. */
  machine?: string;
}

/** What an exhibit's renderer makes of it. */
export interface Drawing {
  content: Element;
  /** For screen readers. */
  summary?: string;
  /** Whether it scrolls sideways. */
  wide?: boolean;
  keys?: (event: KeyboardEvent) => void;
  hint?: string;
  /** What is left out. */
  left?: string | number | false;
}

/** A picture of the page that can be saved as a slide. */
export interface Picture {
  key: string;
  name: string;
  root: HTMLElement | null;
  draw(ink: string): { width: number; height: number; parts: Element[]; keys: [Element, string][]; told: string[] };
}

/** What a lesson asks of the page around it. */
export interface LessonHost {
  /** Whether the lesson is the whole page. */
  top?: boolean;
  slides?: boolean;
  /** The text of a finished run, or race, by name. */
  trace(name: string): Promise<string>;
  race(name: string): Promise<string>;
  live: ((element: Element, spec: any, heard: (trace: string) => void) => { destroy(): void }) | null;
  /** The address for "lesson:NAME", "method:KEY" or a web address; null where there is none. */
  href(to: string): string | null;
  link(screen: string): string;
  tools?: Element[];
  /** The reader's answers, as the page keeps them. */
  recall(): any;
  remember(record: object): void;
  progress?(lesson: string): any;
  moved(screen: string, alone: boolean): void;
  seeded(seed: number): void;
}

export interface WatchOptions {
  /** Whether the panels have ids; else the same words are classes. */
  ids?: boolean;
  keys?: boolean;
  /** Whether a trace that is complete when it is first fed plays by itself. */
  autoplay?: boolean;
  onSelect?: ((chosen: { step: number; node: NodeRef; index: number | null }) => void) | null;
  /** Something on the screen has changed. */
  changed?: () => void;
  /** The step at which a trace that does not play begins. */
  first?: number | null;
}

export interface PlayerHooks {
  show(step: number, stage: Stage, verdicts?: number): void;
  changed(): void;
}

export interface ProofOptions {
  playing?: boolean;
  shown?: number;
}

export interface SliderSpec {
  label: string;
  low: number;
  high: number;
  step: number;
  value: number | null;
  /** A value in words. */
  told?: (value: any) => string;
  /** What stands there before the reader has chosen. */
  unset?: string;
  onInput: (value: number) => void;
}

export interface SlideOptions {
  /** The beginning of the file's name, and the line below the picture. */
  name(): string;
  heading(): string;
  /** Classes. */
  looks: { button: string; select: string; quiet: string };
}
