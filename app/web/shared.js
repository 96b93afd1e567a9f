// From Watch to Compare and back: the settings of the one become those of the other, and run there.
import { addressWith } from "./address.js";
import { missingPart } from "./choices.js";
import { optionsOf } from "./differences.js";
import { go } from "./history.js";
import { controlsOf, traceOf } from "./rooms.js";
import { runsOf } from "./runs.js";

const RIVALS = ["chain", "prompt_lookup"];
const plain = (drafter) => ({ drafter, options: {}, verifier: "", rule_options: {} });

/** Race the method on Watch against plain decoding and another usual one, on the same prompt. */
export function raceThis() {
  const now = controlsOf("watch");
  if (!now) return;
  const { pair, json_schema: _, python_names: __, heal: ___, ...rest } = now, own = JSON.parse(pair);
  const rival = RIVALS.find((key) => key !== own.drafter && !missingPart(key, rest.models));
  const others = ["none", rival].filter((key) => key && key !== own.drafter).map(plain);
  go("compare", addressWith("compare", { ...rest, lanes: JSON.stringify([others[0], own, ...others.slice(1)]) }));
}

/**
 * Watch the run of this lane, made once more.
 * @type {(lane: string) => void}
 */
export function watchLane(lane) {
  const { run } = runsOf(traceOf("compare")).find((one) => one.run.lane === lane), { prompt, drafter, verifier } = run;
  const pair = { drafter: drafter.key, options: optionsOf(run), verifier: verifier.key,
    rule_options: verifier.options || {} };
  const { temperature, top_k, top_p, seed } = run.sampling;
  go("watch", addressWith("watch", { prompt: prompt.messages ? prompt.messages.at(-1).content : prompt.text,
    pair: JSON.stringify(pair), temperature, top_k, top_p, seed, models: run.family || "",
    max_new_tokens: controlsOf("compare")?.max_new_tokens }));
}
