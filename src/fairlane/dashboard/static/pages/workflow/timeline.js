// @ts-check
// When the tasks of a workflow waited and ran, below each other, and for which task each of them waited last.

import { now } from "../../lib/clock.js";
import { count, duration } from "../../lib/format.js";
import { html, useState } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { LIVE } from "../../lib/states.js";
import { Card } from "./card.js";
import { CriticalSample } from "./critical-sample.js";
import { usePointing } from "./pointing.js";
import { aboutTimes, countStates, countsText } from "./words.js";

/**
 * @import { NodeView, State } from "../../../types/api.js"
 * @import { Counts } from "../../ui/state-counts.js"
 * @import { Shown } from "../workflow.js"
 * @import { Box } from "./boxes.js"
 * @import { Timing } from "./times.js"
 * @typedef {{ kind: "waited" | "ready" | "ran", from: number, to: number }} Bar
 * @typedef {object} Row
 * @property {Box} box
 * @property {NodeView} task The only one, or the first of those that are alike.
 * @property {State} state
 * @property {number} since When it could run: what comes first is above.
 * @property {string | null} after
 * @property {Bar[]} bars
 * @property {string} about
 */

/** @type {Record<Bar["kind"], string>} */
const KINDS = { waited: "waited for other tasks", ready: "could run, and had not started", ran: "ran" };
const AT_ONCE = 200;
const NEVER = /** @type {number | null} */ (null);
const TICKS = [0, 0.25, 0.5, 0.75, 1];

/** @param {{ shown: Shown }} props */
export function Timeline({ shown }) {
  const [most, setMost] = useState(AT_ONCE);
  const pointing = usePointing();
  const { workflow, structure } = shown;
  const created = Date.parse(workflow.created_at);
  const ended = workflow.ended_at === null ? now.value : Date.parse(workflow.ended_at);
  const length = Math.max(1, ended - created);
  const rows = structure.boxes
    .map((box) => rowOf(box, shown, ended))
    .sort((one, other) => one.since - other.since);
  const share = (/** @type {number} */ time) => Math.min(1, Math.max(0, (time - created) / length));
  return html`
    <div class="row view-legend">
      <${CriticalSample} />
      ${Object.entries(KINDS).map(
        ([kind, means]) => html`<span key=${kind} data-state="completed">
          <span class="timeline-bars"><span data-kind=${kind}></span></span> ${means}
        </span>`,
      )}
    </div>
    <div class="scroll-sideways" tabindex="0" role="group" aria-label="Timeline" ...${pointing.over}>
      <table class="timeline">
        <thead><tr>
          <th scope="col">Task</th><th scope="col">Waited for</th>
          <th scope="col"><div class="timeline-axis">
            ${TICKS.map(
              (tick) => html`<span key=${tick} style=${{ left: `${100 * tick}%` }}>
              ${duration((tick * length) / 1000)}
            </span>`,
            )}
          </div></th>
        </tr></thead>
        <tbody>${rows
          .slice(0, most)
          .map(
            (row) => html`<${TimelineRow} key=${row.box.id} row=${row} shown=${shown} share=${share} />`,
          )}</tbody>
      </table>
    </div>
    ${
      rows.length > most &&
      html`<p class="table-footer">
        <button type="button" class="button small" onClick=${() => setMost(most + AT_ONCE)}>
          Show more: ${count(rows.length - most)} left
        </button>
      </p>`
    }
    <${Card} pointing=${pointing} shown=${shown} />`;
}

/** @param {{ row: Row, shown: Shown, share: (time: number) => number }} props */
function TimelineRow({ row: { box, task, state, after, bars, about }, shown, share }) {
  const group = box.members.length > 1;
  const href = group ? shown.to({ view: "list", like: box.id }) : link(["tasks", box.id]);
  return html`<tr data-critical=${box.members.some((id) => shown.path.has(id))}>
    <th scope="row" class="ellipsis">
      <a href=${href} data-box=${box.id}>
        ${group ? `${count(box.members.length)} × ${task.task_type}` : task.name}
      </a>
    </th>
    <td class="ellipsis muted">${after && shown.nameOf(after)}</td>
    <td>
      <div class="timeline-bars" data-state=${state} role="img" aria-label=${about} title=${about}>
        ${bars.map(
          ({ kind, from, to }) =>
            html`<span key=${kind} data-kind=${kind} style=${{
              left: `${100 * share(from)}%`,
              width: `${100 * (share(to) - share(from))}%`,
            }}></span>`,
        )}
      </div>
    </td>
  </tr>`;
}

/** @param {Box} box @param {Shown} shown @param {number} end @returns {Row} */
function rowOf(box, shown, end) {
  const { byId, timings, workflow, nameOf } = shown;
  const created = Date.parse(workflow.created_at);
  const tasks = box.members.map((id) => /** @type {NodeView} */ (byId.get(id)));
  const all = box.members.map((id) => /** @type {Timing} */ (timings.get(id)));
  const [task, timing] = [tasks[0], all[0]];
  const ready = earliest(all.map((each) => each.ready));
  const live = tasks.some(({ status }) => LIVE.has(status));
  const started = earliest(all.map((each) => each.started));
  const ended = live ? end : (latest(all.map((each) => each.ended)) ?? end);
  const about =
    tasks.length === 1
      ? aboutTimes(task, timing, { created, now: end, nameOf })
      : aboutGroup(countStates(box.members, byId), { started, ended, live });
  return {
    box,
    task,
    state: stateOf(tasks),
    since: started ?? ready ?? Infinity,
    after: timing.after,
    bars: barsOf(created, ready, started, ended),
    about,
  };
}

/**
 * @param {number} created
 * @param {number | null} ready
 * @param {number | null} started
 * @param {number} ended
 * @returns {Bar[]}
 */
function barsOf(created, ready, started, ended) {
  const waited = Math.min(ready ?? ended, started ?? ended);
  /** @type {Bar[]} */
  const bars = [
    { kind: "waited", from: created, to: waited },
    { kind: "ready", from: waited, to: started ?? ended },
  ];
  return started === null ? bars : [...bars, { kind: "ran", from: started, to: ended }];
}

/** The state that a row has the colour of: what runs or went wrong shows. @param {NodeView[]} tasks */
function stateOf(tasks) {
  /** @type {State[]} */
  const telling = ["executing", "dead_letter", "failed", "retrying", "queued", "scheduled", "cancelled"];
  return telling.find((state) => tasks.some(({ status }) => status === state)) ?? "completed";
}

/** @param {Counts} counts @param {{ started: number | null, ended: number, live: boolean }} times */
function aboutGroup(counts, { started, ended, live }) {
  const text = countsText(counts);
  if (started === null) return `${text}.`;
  const passed = duration((ended - started) / 1000);
  return live ? `${text}; the first started ${passed} ago.` : `${text}; ${passed} from first to last.`;
}

/** @param {(number | null)[]} times */
const known = (times) => times.filter((time) => time !== null);

/** @param {(number | null)[]} times @returns {number | null} */
const earliest = (times) =>
  known(times).reduce((one, other) => (one === null || other < one ? other : one), NEVER);

/** @param {(number | null)[]} times @returns {number | null} */
const latest = (times) =>
  known(times).reduce((one, other) => (one === null || other > one ? other : one), NEVER);
