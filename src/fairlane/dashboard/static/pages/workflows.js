// @ts-check
// Workflows, the newest first, and how far each of them is.

import { get } from "../lib/api.js";
import { html, useCallback } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { navigate } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { Heading, Panel } from "../ui/panel.js";
import { NoWorkflows } from "./workflows/empty.js";
import { FilterBar } from "./workflows/filter-bar.js";
import { isUnfiltered, linkTo, viewOf } from "./workflows/query.js";
import { WorkflowTable } from "./workflows/table.js";

/**
 * @import { EventType, WorkflowSummaryView } from "../../types/api.js"
 * @import { Filter, View } from "./workflows/query.js"
 */

await Promise.all(["folding-tables.css", "workflows.css"].map(loadStyle));

const SIZE = 50;

/** @type {EventType[]} */
const EVENTS = [
  "task.submitted",
  "task.started",
  "task.completed",
  "task.failed",
  "task.dead_letter",
  "task.cancelled",
  "task.queued",
  "task.waiting",
  "task.deleted",
];

/** @param {{ query: URLSearchParams }} props */
export function Workflows({ query }) {
  const view = viewOf(query);
  const page = useResource(
    (abort) => get("api/v1/workflows", { ...view.filter, limit: SIZE, cursor: view.cursor }, abort),
    [linkTo(view)],
    { on: EVENTS },
  );
  const changed = useCallback(() => page.refresh(), [linkTo(view)]); // A new function draws all rows again.
  const set = (/** @type {Filter} */ filter) => navigate(linkTo({ filter }));
  return html`
    <${Heading} title="Workflows" />
    <${FilterBar} filter=${view.filter} set=${set} />
    ${fetched(
      page,
      ({ workflows, next_cursor: next }) =>
        html`<${List} workflows=${workflows} view=${view} next=${next} changed=${changed} />`,
      8,
    )}`;
}

/**
 * @param {object} props
 * @param {WorkflowSummaryView[]} props.workflows
 * @param {View} props.view
 * @param {string | null} props.next
 * @param {() => Promise<unknown>} props.changed
 */
function List({ workflows, view, next, changed }) {
  const { filter, cursor } = view;
  if (workflows.length === 0 && !cursor && !next) {
    return isUnfiltered(filter) ? html`<${NoWorkflows} />` : html`<${Empty} title="No such workflows" />`;
  }
  return html`<${Panel} flush>
    <${WorkflowTable} workflows=${workflows} changed=${changed} />
    <div class="row table-footer">
      <span class="grow"></span>
      ${cursor && html`<a class="button" href=${linkTo({ filter })}>To the newest</a>`}
      ${
        next &&
        html`<a class="button" href=${linkTo({ filter, cursor: next })} onClick=${() => scrollTo(0, 0)}>
          More
        </a>`
      }
    </div>
  </${Panel}>`;
}
