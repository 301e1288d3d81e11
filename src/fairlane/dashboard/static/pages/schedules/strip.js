// @ts-check
// The last ticks as a strip of cells: each outcome has a colour and a shape.

import { html } from "../../lib/preact.js";
import { aboutRun, countOutcomes, OUTCOMES } from "./words.js";

/** @import { RunView } from "../../../types/api.js" */

/**
 * The oldest tick is at the left.
 *
 * @param {{ runs: RunView[], most: number }} props `runs`: the newest first.
 */
export function TickStrip({ runs, most }) {
  const shown = runs.slice(0, most).reverse();
  if (shown.length === 0) return null;
  return html`<span class="tick-strip" role="img" aria-label=${`Last ticks: ${countOutcomes(shown)}`}>
    ${shown.map(
      (run, index) => html`<span key=${`${run.tick} ${index}`} class="tick" data-outcome=${run.outcome}
        title=${aboutRun(run)}></span>`,
    )}
  </span>`;
}

/** What the cells mean. */
export const Legend = () => html`<ul class="row tick-legend" aria-label="Outcomes">
  ${Object.entries(OUTCOMES).map(
    ([outcome, { means }]) => html`<li key=${outcome} title=${means}>
      <span class="tick" data-outcome=${outcome}></span>${outcome}
    </li>`,
  )}
</ul>`;
