// @ts-check
// Links to tasks and workers, by the end of their id.

import { shortId } from "../lib/format.js";
import { html } from "../lib/preact.js";
import { link } from "../lib/router.js";

/** @param {{ id: string }} props */
export const TaskLink = ({ id }) =>
  html`<a class="mono" href=${link(["tasks", id])} title=${id}>${shortId(id)}</a>`;

/** @param {{ id: string }} props */
export const WorkerLink = ({ id }) =>
  html`<a class="mono" href=${link("workers", { id })} title=${id}>${shortId(id)}</a>`;
