// @ts-check
// The table of schedules.

import { memo, useStable } from "../../lib/memo.js";
import { html } from "../../lib/preact.js";
import { Badge } from "../../ui/badges.js";
import { ScheduleLink } from "../../ui/links.js";
import { SortableHead, sortRows } from "../../ui/sort.js";
import { Ago } from "../../ui/time.js";
import { ScheduleActions } from "./actions.js";
import { NextTick, OutcomeBadge, ScheduleBadge } from "./badges.js";
import { TickStrip } from "./strip.js";
import { aboutRun } from "./words.js";

/**
 * @import { ScheduleView } from "../../../types/api.js"
 * @import { Column } from "../../ui/sort.js"
 */

/** @type {Column<ScheduleView>[]} */
const COLUMNS = [
  { name: "schedule", title: "Schedule", by: ({ schedule_id: id }) => id },
  { name: "state", title: "State", by: ({ state }) => state },
  { name: "next", title: "Next tick", by: ({ next_at: next }) => (next ? Date.parse(next) : Infinity) },
  { name: "last", title: "Last tick", by: ({ runs }) => runs[0]?.tick ?? "", down: true },
  { name: "ticks", title: "Ticks" },
  { name: "actions", title: "" },
];
const TICKS = 30;

/**
 * @param {object} props
 * @param {ScheduleView[]} props.schedules
 * @param {() => Promise<unknown>} props.changed
 * @param {string} props.order
 * @param {(order: string) => string} props.to
 */
export function ScheduleTable({ schedules, changed, order, to }) {
  const stable = useStable(schedules, (each) => each.schedule_id);
  const rows = sortRows(stable, COLUMNS, order);
  return html`<table class="folding-table schedules" role="table" aria-label="Schedules">
    <${SortableHead} columns=${COLUMNS} order=${order} to=${to} />
    <tbody role="rowgroup">${rows.map(
      (each) => html`<${ScheduleRow} key=${each.schedule_id} schedule=${each} changed=${changed} />`,
    )}</tbody>
  </table>`;
}

const ScheduleRow = memo(
  /** @param {{ schedule: ScheduleView, changed: () => Promise<unknown> }} props */
  ({ schedule, changed }) => {
    const { schedule_id: id, source, in_words: words, runs } = schedule;
    const [last] = runs;
    return html`<tr role="row" data-name=${id}>
      <th role="rowheader" scope="row" class="name">
        <${ScheduleLink} id=${id} />
        ${source === "code" && html`<${Badge} title="Declared in code.">code</${Badge}>`}
        <div class="muted in-words">${words}</div>
      </th>
      <td role="cell" class="state"><${ScheduleBadge} schedule=${schedule} /></td>
      <td role="cell" class="next-tick" data-title="Next tick"><${NextTick} schedule=${schedule} /></td>
      <td role="cell" class="last-tick" data-title="Last tick">
        ${
          last
            ? html`<${OutcomeBadge} outcome=${last.outcome} title=${aboutRun(last)} />
              <small class="muted"><${Ago} at=${last.tick} /></small>`
            : html`<span class="muted">none yet</span>`
        }
      </td>
      <td role="cell" class="ticks"><${TickStrip} runs=${runs} most=${TICKS} /></td>
      <td role="cell" class="row-actions">
        <${ScheduleActions} schedule=${schedule} changed=${changed} small />
      </td>
    </tr>`;
  },
);
