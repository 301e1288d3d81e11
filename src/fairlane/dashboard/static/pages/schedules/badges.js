// @ts-check
// Badges of a schedule's state and of what became of a tick, and when it fires next.

import { wallTime } from "../../lib/local-times.js";
import { html } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";
import { Ago } from "../../ui/time.js";
import { OUTCOMES, STATE_TONES } from "./words.js";

/** @import { ScheduleView, Outcome } from "../../../types/api.js" */

/** @param {{ schedule: ScheduleView }} props */
export const ScheduleBadge = ({ schedule: { state, pause } }) =>
  html`<${Badge} tone=${STATE_TONES[state]} title=${pause?.note}>${state}</${Badge}>`;

/** @param {{ outcome: Outcome, title?: string }} props */
export const OutcomeBadge = ({ outcome, title = OUTCOMES[outcome].means }) =>
  html`<${Badge} tone=${OUTCOMES[outcome].tone} title=${title}>${outcome}</${Badge}>`;

/**
 * The next tick: in how long, and what the clock in its zone shows then.
 *
 * @param {{ schedule: ScheduleView }} props
 */
export function NextTick({ schedule: { state, pause, next_at: next, upcoming, problem } }) {
  if (state === "ended") return html`<span class="muted">never again</span>`;
  if (state === "paused" && !pause?.until) return html`<span class="muted">when it is resumed</span>`;
  if (problem) return html`<${Badge} tone="danger" title=${problem}>not here</${Badge}>`;
  if (!next) return html`<span class="muted">–</span>`;
  return html`<${Ago} at=${next} />
    ${upcoming[0] && html`<small class="muted">${wallTime(upcoming[0].local)}</small>`}`;
}
