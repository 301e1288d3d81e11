// @ts-check
// Badges of states, priorities and workers.

import { spaced } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { band } from "../lib/states.js";

/**
 * @import { State, WorkerStatus } from "../../types/api.js"
 * @import { Children } from "../lib/preact.js"
 * @typedef {"plain" | "good" | "info" | "warning" | "danger"} Tone
 */

/** The state of a task, in its colour. @param {{ state: State }} props */
export const StateBadge = ({ state }) =>
  html`<span class="badge" data-state=${state}>${spaced(state)}</span>`;

/**
 * A priority; and, where waiting has raised it, the effective one.
 *
 * @param {{ priority: string | number, effective?: string | number }} props
 */
export function Priority({ priority, effective = priority }) {
  const raised = html`<span class="raised-priority" title="Raised, because it has waited long.">
    ${" "}→ ${effective}
  </span>`;
  return html`<span class="priority" data-band=${band(priority)}>
    ${priority}${effective !== priority && raised}
  </span>`;
}

/** @param {{ status: WorkerStatus }} props */
export const WorkerBadge = ({ status }) =>
  html`<span class="badge" data-worker=${status}>${spaced(status)}</span>`;

/**
 * Any other badge.
 *
 * @param {{ tone?: Tone, title?: string, children: Children }} props
 */
export const Badge = ({ tone = "plain", title, children }) =>
  html`<span class="badge" data-tone=${tone} title=${title}>${children}</span>`;
