// @ts-check
// What the mark of the critical path means.

import { html } from "../../lib/preact.js";

const MEANS =
  "Each of these tasks is the one that the next waited for: they determined how long it all took.";

export const CriticalSample = () =>
  html`<span title=${MEANS}><span class="critical-sample"></span> critical path</span>`;
