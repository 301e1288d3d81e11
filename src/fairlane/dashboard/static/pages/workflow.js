// @ts-check
// One workflow: its graph, when its tasks waited and ran, and a table of them.

import { get, segment } from "../lib/api.js";
import { isolated, shortId } from "../lib/format.js";
import { html, useEffect, useMemo, useRef } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link } from "../lib/router.js";
import { loadStyle } from "../lib/stylesheet.js";
import { Empty } from "../ui/empty.js";
import { fetched } from "../ui/fetched.js";
import { Heading } from "../ui/panel.js";
import { shapeOf, structureOf } from "./workflow/boxes.js";
import { Graph } from "./workflow/graph.js";
import { Failures, Head, Summary } from "./workflow/head.js";
import { TaskTable } from "./workflow/task-table.js";
import { Timeline } from "./workflow/timeline.js";
import { criticalPath, timingsOf } from "./workflow/times.js";

/**
 * @import { EventType, NodeView, WorkflowView } from "../../types/api.js"
 * @import { Structure } from "./workflow/boxes.js"
 * @import { Timing } from "./workflow/times.js"
 * @typedef {"graph" | "timeline" | "list"} ViewName
 * @typedef {object} ViewQuery What the address says.
 * @property {ViewName} [view]
 * @property {string} [state] Of the tasks in the list.
 * @property {string} [like] A task: those that are like it are in the list.
 * @property {string} [order]
 */

/**
 * What the parts of the page show.
 *
 * @typedef {object} Shown
 * @property {WorkflowView} workflow
 * @property {Map<string, NodeView>} byId
 * @property {Map<string, Timing>} timings
 * @property {Set<string>} path The critical path, the last task first.
 * @property {Structure} structure The same for as long as the workflow has the same tasks.
 * @property {(id: string) => string} nameOf The name of a task, for sentences.
 * @property {(query: ViewQuery) => string} to The address of another view.
 * @property {() => Promise<void>} refresh
 */

await Promise.all(["folding-tables.css", "workflow.css"].map(loadStyle));

/** @type {EventType[]} */
const EVENTS = [
  "task.started",
  "task.completed",
  "task.failed",
  "task.retrying",
  "task.dead_letter",
  "task.cancelled",
  "task.queued",
  "task.waiting",
  "task.snoozed",
  "task.deleted",
];

/** @type {Record<ViewName, string>} */
const VIEWS = { graph: "Graph", timeline: "Timeline", list: "List" };
const NARROW = matchMedia("(max-width: 860px)");

/** @param {{ parts: string[], query: URLSearchParams }} props */
export const Workflow = ({ parts: [, id], query }) =>
  html`<${WorkflowPage} key=${id} id=${id} query=${queryOf(query)} />`;

/** @param {URLSearchParams} query @returns {ViewQuery} */
function queryOf(query) {
  const view = Object.keys(VIEWS).find((name) => name === query.get("view"));
  return {
    view: /** @type {ViewName | undefined} */ (view),
    state: query.get("state") ?? undefined,
    like: query.get("like") ?? undefined,
    order: query.get("order") ?? undefined,
  };
}

/** @param {{ id: string, query: ViewQuery }} props */
function WorkflowPage({ id, query }) {
  const ids = useRef(/** @type {Set<string>} */ (new Set()));
  const resource = useResource((abort) => get(`api/v1/workflows/${segment(id)}`, {}, abort), [], {
    on: EVENTS,
    concerns: ({ data }) => data.task_id !== undefined && ids.current.has(data.task_id),
    every: 5000, // When a run began is recorded a moment after the event.
    until: ({ status }) => status !== "running",
  });
  const { data, error, refresh } = resource;
  useEffect(() => {
    if (data) document.title = `${data.name ?? "Workflow"} ${shortId(id)} · Fairlane`;
    ids.current = new Set(data?.tasks.map((task) => task.task_id));
  }, [data]);
  if (error?.status === 404) return html`<${Gone} id=${id} />`;
  return fetched(
    resource,
    (workflow) => html`<${Content} workflow=${workflow} query=${query} refresh=${refresh} />`,
    8,
  );
}

/** @param {{ workflow: WorkflowView, query: ViewQuery, refresh: () => Promise<void> }} props */
function Content({ workflow, query, refresh }) {
  const shown = useShown(workflow, refresh);
  const view = query.view ?? (NARROW.matches ? "list" : "graph");
  return html`
    <${Head} workflow=${workflow} refresh=${refresh} />
    <${Failures} workflow=${workflow} />
    <${Summary} shown=${shown} />
    <section class="panel">
      <nav class="row views" aria-label="Views">${Object.entries(VIEWS).map(
        ([name, title]) => html`<a key=${name} class="button small"
          href=${shown.to({ view: /** @type {ViewName} */ (name) })}
          aria-current=${name === view ? "page" : undefined}>${title}</a>`,
      )}</nav>
      ${view === "graph" && html`<${Graph} shown=${shown} />`}
      ${view === "timeline" && html`<${Timeline} shown=${shown} />`}
      ${view === "list" && html`<${TaskTable} shown=${shown} query=${query} />`}
    </section>`;
}

/** @param {WorkflowView} workflow @param {() => Promise<void>} refresh @returns {Shown} */
function useShown(workflow, refresh) {
  const { workflow_id: id, tasks } = workflow;
  const structure = useMemo(() => structureOf(tasks), [shapeOf(tasks)]);
  return useMemo(() => {
    const byId = new Map(tasks.map((task) => [task.task_id, task]));
    const timings = timingsOf(workflow);
    return {
      workflow,
      byId,
      timings,
      path: criticalPath(tasks, timings),
      structure,
      nameOf: (task) => isolated(byId.get(task)?.name ?? shortId(task)),
      to: (query) => link(["workflows", id], { ...query }),
      refresh,
    };
  }, [workflow, structure]);
}

/** @param {{ id: string }} props */
const Gone = ({ id }) => html`
  <${Heading} title="Workflow" />
  <${Empty} title="There is no such workflow">
    <p>Its tasks were deleted by somebody or by the cleanup, or its id is wrong.</p>
    <p><code>${id}</code></p>
    <a class="button" href=${link("workflows")}>To all workflows</a>
  </${Empty}>`;
