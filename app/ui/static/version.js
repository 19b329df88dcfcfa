// The page of a version: its predictive band, its variants, and code for predictions.

import { showBand } from "./band.js";
import { document_ } from "./parts.js";
import { showSnippets } from "./snippets.js";
import { showVariants } from "./variants.js";

const question = document_("question");
showSnippets(question);
if (document.getElementById("band")) await showBand(question);
if (document.getElementById("variants")) await showVariants(question);
