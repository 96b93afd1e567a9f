// The entry for any page that shows lessons, too: the same global, with more in it.
import { mountLesson } from "./lesson.js";
import { mountQuiz } from "./quiz.js";
import { mountShelf } from "./shelf.js";
import { mountCompare } from "../compare.js";
import { tellingStep } from "../player.js";
import { picturesIn } from "../slides/pictures.js";
import { pngOf, slideOf, slideTools } from "../slides/slide.js";
import { mountWatch } from "../watch.js";

globalThis.Draftscope = {
  mountCompare, mountLesson, mountQuiz, mountShelf, mountWatch, picturesIn, pngOf, slideOf, slideTools,
  tellingStep,
};
