// The entry for any page that shows runs: the one global, with what viz/README.md describes.
import { mountCompare } from "./compare.js";
import { tellingStep } from "./player.js";
import { mountWatch } from "./watch.js";

globalThis.Draftscope = { mountCompare, mountWatch, tellingStep };
