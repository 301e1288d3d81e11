import { shortId } from "../lib/format.js";
import { link } from "../lib/router.js";
import { html } from "../lib/preact.js";

/** The way to a task, by the end of its id. */
export const TaskLink = ({ id }) =>
  html`<a class="mono" href=${link(["tasks", id])} title=${id}>${shortId(id)}</a>`;

/** The way to a worker, by the end of its id. */
export const WorkerLink = ({ id }) =>
  html`<a class="mono" href=${link("workers", { id })} title=${id}>${shortId(id)}</a>`;
