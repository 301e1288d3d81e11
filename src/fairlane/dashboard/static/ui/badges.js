import { spaced } from "../lib/format.js";
import { band } from "../lib/states.js";
import { html } from "../lib/preact.js";

/** The state of a task, in its colour. */
export const StateBadge = ({ state }) =>
  html`<span class="badge" data-state=${state}>${spaced(state)}</span>`;

/** A priority; and, where waiting has raised it, what it counts as. */
export function Priority({ priority, effective = priority }) {
  const raised = effective !== priority;
  return html`<span class="priority" data-band=${band(priority)}>
    ${priority}${
      raised &&
      html`<span class="raised-priority" title="It has waited long enough to count as this."> → ${effective}
      </span>`
    }
  </span>`;
}

/** The status of a worker. */
export const WorkerBadge = ({ status }) =>
  html`<span class="badge" data-worker=${status}>${spaced(status)}</span>`;

/** Something that stands out. */
export const Badge = ({ tone = "plain", title, children }) =>
  html`<span class="badge" data-tone=${tone} title=${title}>${children}</span>`;
