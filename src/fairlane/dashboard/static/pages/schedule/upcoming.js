// @ts-check
// The next ticks of a schedule: what the clock in its zone shows, and where that clock is set.

import { wallTime } from "../../lib/local-times.js";
import { html } from "../../lib/preact.js";
import { Ago } from "../../ui/time.js";

/** @import { ScheduleState, TickView } from "../../../types/api.js" */

/** @type {Record<ScheduleState, string>} */
const NONE = {
  active: "None.",
  paused: "None: the schedule is paused.",
  ended: "None: the schedule has ended.",
};

/** @param {{ ticks: TickView[], state?: ScheduleState }} props */
export const Upcoming = ({ ticks, state = "active" }) =>
  ticks.length === 0
    ? html`<p class="table-footer muted">${NONE[state]}</p>`
    : html`<ol class="item-list upcoming">${ticks.map(
        ({ at, local, note }) => html`<li key=${at}>
          <div class="grow">
            <span>${wallTime(local)}</span> <span class="muted">${offsetOf(local)}</span>
            ${note && html`<div class="tick-note">${note}</div>`}
          </div>
          <${Ago} at=${at} />
        </li>`,
      )}</ol>`;

/** Return the offset from UTC: "+02:00". @param {string} local */
const offsetOf = (local) => /(Z|[+-]\d\d:?\d\d)$/.exec(local)?.[1].replace(/^(Z|[+-]00:00)$/, "UTC") ?? "";
