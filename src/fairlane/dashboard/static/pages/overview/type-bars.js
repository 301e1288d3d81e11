import { count } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { html } from "../../lib/preact.js";
import { StateBar } from "../../ui/state-counts.js";

const MOST = 12;

/** The types with most tasks: how many of them are in which state. */
export function TypeBars({ types }) {
  const rows = Object.entries(types)
    .map(([type, states]) => ({
      type,
      states,
      sum: Object.values(states).reduce((all, each) => all + each, 0),
    }))
    .filter(({ sum }) => sum > 0)
    .sort((one, other) => other.sum - one.sum);
  const most = rows[0]?.sum ?? 1;
  return html`<ul class="bar-list">
    ${rows.slice(0, MOST).map(
      ({ type, states, sum }) => html`<li key=${type}>
        <a href=${link("tasks", { type })}>${type}</a>
        <${StateBar} states=${states} share=${sum / most} />
        <b>${count(sum)}</b>
      </li>`,
    )}
    ${rows.length > MOST && html`<li><a href=${link("queues")}>and ${rows.length - MOST} more</a></li>`}
    ${rows.length === 0 && html`<li class="muted">None yet.</li>`}
  </ul>`;
}
