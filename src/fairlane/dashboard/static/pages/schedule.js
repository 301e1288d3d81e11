// @ts-check
// One schedule: when it fires next, what became of its last ticks, and what can be done with it.

import { get, segment } from "../lib/api.js";
import { count } from "../lib/format.js";
import { html, useEffect } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Badge } from "../ui/badges.js";
import { CopyButton } from "../ui/copy-button.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { JsonPanel } from "../ui/json.js";
import { Heading, Panel } from "../ui/panel.js";
import { Ago } from "../ui/time.js";
import { Backfill } from "./schedule/backfill.js";
import { ChangeActions } from "./schedule/change-actions.js";
import { About, TaskFacts } from "./schedule/facts.js";
import { Runs } from "./schedule/runs.js";
import { Upcoming } from "./schedule/upcoming.js";
import { ScheduleActions } from "./schedules/actions.js";
import { ScheduleBadge } from "./schedules/badges.js";
import { Legend, TickStrip } from "./schedules/strip.js";

/** @import { ScheduleView } from "../../types/api.js" */

await Promise.all(["fields.css", "folding-tables.css", "schedules.css"].map(loadStyle));

const TICKS = 100;

/**
 * The key keeps schedules apart: what was entered on one is not there on the next.
 *
 * @param {{ parts: string[] }} props
 */
export const Schedule = ({ parts: [, id] }) => html`<${SchedulePage} key=${id} id=${id} />`;

/** @param {{ id: string }} props */
function SchedulePage({ id }) {
  const resource = useResource((abort) => get(`api/v1/schedules/${segment(id)}`, {}, abort), [], {
    on: ["system.metrics"],
    every: 5000,
  });
  const { error, refresh } = resource;
  useEffect(() => {
    document.title = `${id} · Fairlane`;
  }, []);
  if (error?.status === 404) return html`<${Gone} id=${id} />`;
  return fetched(resource, (schedule) => html`<${Content} schedule=${schedule} refresh=${refresh} />`, 6);
}

/** @param {{ schedule: ScheduleView, refresh: () => Promise<void> }} props */
function Content({ schedule, refresh }) {
  const { schedule_id: id, runs, totals, upcoming, task } = schedule;
  const hint = html`${count(totals.fired)} fired, ${count(totals.skipped)} skipped,${" "}
    ${count(totals.missed)} missed in all`;
  const tasks = html`<a class="button small" href=${link("tasks", { schedule_id: id })}>All its tasks</a>`;
  return html`
    <${Head} schedule=${schedule} refresh=${refresh} />
    <${PauseBanner} schedule=${schedule} />
    ${schedule.problem && html`<div class="banner error" role="status">${schedule.problem}</div>`}
    <${Panel} title="Last ticks" hint=${hint} tools=${tasks}>
      <${TickStrip} runs=${runs} most=${TICKS} />
      ${runs.length === 0 && html`<p class="muted">None yet.</p>`}
      <${Legend} />
    </${Panel}>
    <div class="columns">
      <div>
        <${Panel} title="Next ticks" hint=${schedule.tz ?? "UTC"} flush>
          <${Upcoming} ticks=${upcoming} state=${schedule.state} />
        </${Panel}>
        <${Panel} title="About"><${About} schedule=${schedule} /></${Panel}>
        <${Panel} title="Task"><${TaskFacts} task=${task} /></${Panel}>
        <${JsonPanel} title="Parameters" value=${task.parameters} />
      </div>
      <div>
        <${Runs} runs=${runs} />
        <${Backfill} schedule=${schedule} refresh=${refresh} />
      </div>
    </div>`;
}

/** @param {{ schedule: ScheduleView, refresh: () => Promise<void> }} props */
const Head = ({ schedule, refresh }) => html`<div class="page-heading">
  <div>
    <a class="muted" href=${link("schedules")}>Schedules</a>
    <h1 class="row">
      ${schedule.schedule_id} <${ScheduleBadge} schedule=${schedule} />
      ${schedule.source === "code" && html`<${Badge}>code</${Badge}>`}
      <${CopyButton} text=${schedule.schedule_id} what="the id" />
    </h1>
    <p class="in-words">${schedule.in_words}</p>
    ${
      schedule.source === "code" &&
      html`<p class="muted">
        Declared in code${schedule.owner && html` of <b>${schedule.owner}</b>`}: change it there. It is
        deleted a day after the code stops declaring it.
      </p>`
    }
  </div>
  <div class="tools">
    <${ScheduleActions} schedule=${schedule} changed=${refresh} />
    ${schedule.source === "api" && html`<${ChangeActions} schedule=${schedule} />`}
  </div>
</div>`;

/** @param {{ schedule: ScheduleView }} props */
const PauseBanner = ({ schedule: { pause } }) =>
  pause &&
  html`<div class="banner paused" role="status">
    <span>
      Paused <${Ago} at=${pause.since} />. ${pause.until && html`It resumes <${Ago} at=${pause.until} />. `}
      ${pause.note && html`<b>${pause.note}</b>`}
    </span>
  </div>`;

/** @param {{ id: string }} props */
const Gone = ({ id }) => html`
  <${Heading} title="Schedule" />
  <${Empty} title="There is no such schedule">
    <p>It was deleted, its code no longer declares it, or its id is wrong.</p>
    <p><code>${id}</code></p>
    <a class="button" href=${link("schedules")}>To all schedules</a>
  </${Empty}>`;
