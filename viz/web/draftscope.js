// The entry for any page that shows runs: the one global, with what viz/README.md describes.
import { mountBeside } from "./beside.js";
import { mountCompare } from "./compare.js";
import { tellingStep } from "./player.js";
import { mountWatch } from "./watch.js";

globalThis.Draftscope = { mountBeside, mountCompare, mountWatch, tellingStep };
