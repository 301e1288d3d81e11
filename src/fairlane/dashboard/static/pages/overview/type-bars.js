// @ts-check
// The types with most tasks, and how many of them are in which state.

import { count } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { StateBar } from "../../ui/state-counts.js";

/** @import { Counts } from "../../ui/state-counts.js" */

const MOST = 12;

/** @param {{ types: Record<string, Counts> }} props */
export function TypeBars({ types }) {
  const rows = Object.entries(types)
    .map(([type, counts]) => ({
      type,
      counts,
      sum: Object.values(counts).reduce((all, each) => all + each, 0),
    }))
    .filter(({ sum }) => sum > 0)
    .sort((one, other) => other.sum - one.sum);
  const most = rows[0]?.sum ?? 1;
  return html`<ul class="bar-list">
    ${rows.slice(0, MOST).map(
      ({ type, counts, sum }) => html`<li key=${type}>
        <a href=${link("tasks", { type })}>${type}</a>
        <${StateBar} counts=${counts} share=${sum / most} />
        <b>${count(sum)}</b>
      </li>`,
    )}
    ${rows.length > MOST && html`<li><a href=${link("queues")}>and ${rows.length - MOST} more</a></li>`}
    ${rows.length === 0 && html`<li class="muted">None yet.</li>`}
  </ul>`;
}
