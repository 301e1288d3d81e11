// @ts-check
// Links to tasks and workers, by the end of their id, and to workflows and schedules.

import { shortId } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { link } from "../lib/router.js";
import { boundTo } from "../lib/session.js";

/** @param {{ id: string }} props */
export const TaskLink = ({ id }) =>
  html`<a class="mono" href=${link(["tasks", id])} title=${id}>${shortId(id)}</a>`;

/** @param {{ id: string }} props */
export const WorkerLink = ({ id }) =>
  html`<a class="mono" href=${link("workers", { id })} title=${id}>${shortId(id)}</a>`;

/** @param {{ id: string, name?: string | null }} props */
export const WorkflowLink = ({ id, name }) =>
  html`<a class=${name ? "" : "mono"} href=${link(["workflows", id])} title=${id}>${name || shortId(id)}</a>`;

/** Viewers with a bound token have no such page. @param {{ id: string }} props */
export const ScheduleLink = ({ id }) =>
  boundTo.value === null
    ? html`<a href=${link(["schedules", id])}>${id}</a>`
    : html`<span class="mono">${id}</span>`;
