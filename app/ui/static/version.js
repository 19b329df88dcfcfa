// The tabs of a version: true values, its predictive band, thresholds of its classes, its variants, and code for predictions.

import { showBand } from "./band.js";
import { acceptLabels } from "./labels.js";
import { document_ } from "./parts.js";
import { showSnippets } from "./snippets.js";
import { acceptStepLabels } from "./step_labels.js";
import { showThresholds } from "./thresholds.js";
import { showVariants } from "./variants.js";

const question = document_("question");
showSnippets(question);
if (document.getElementById("labels")) acceptLabels();
if (document.getElementById("step-labels")) acceptStepLabels(question);
if (document.getElementById("thresholds")) showThresholds();
if (document.getElementById("band")) await showBand(question);
if (document.getElementById("variants")) await showVariants(question);
