// @ts-check
// The table of workflows.

import { now } from "../../lib/clock.js";
import { counted, duration, secondsBetween, shortId } from "../../lib/format.js";
import { memo, useStable } from "../../lib/memo.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { WorkflowLink } from "../../ui/links.js";
import { StateCounts } from "../../ui/state-counts.js";
import { Ago } from "../../ui/time.js";
import { CancelWorkflow } from "./actions.js";
import { WorkflowBadge } from "./badge.js";

/** @import { State, WorkflowSummaryView } from "../../../types/api.js" */

const COLUMNS = ["Workflow", "State", "Progress", "Started", "Took", "Actions"];

/** @param {{ workflows: WorkflowSummaryView[], changed: () => Promise<unknown> }} props */
export function WorkflowTable({ workflows, changed }) {
  const rows = useStable(workflows, (each) => each.workflow_id);
  return html`<table class="folding-table workflows" role="table" aria-label="Workflows">
    <thead role="rowgroup"><tr role="row">${COLUMNS.map(
      (title) => html`<th key=${title} role="columnheader" scope="col">
        <span class=${title === "Actions" ? "visually-hidden" : ""}>${title}</span>
      </th>`,
    )}</tr></thead>
    <tbody role="rowgroup">${rows.map(
      (each) => html`<${WorkflowRow} key=${each.workflow_id} workflow=${each} changed=${changed} />`,
    )}</tbody>
  </table>`;
}

const WorkflowRow = memo(
  /** @param {{ workflow: WorkflowSummaryView, changed: () => Promise<unknown> }} props */
  ({ workflow, changed }) => {
    const { workflow_id: id, name, state, tasks, counts, created_at: created } = workflow;
    return html`<tr role="row" data-id=${id}>
      <th role="rowheader" scope="row" class="name">
        <${WorkflowLink} id=${id} name=${name} />
        <div class="muted">
          ${name && html`<span class="mono">${shortId(id)}</span>, `}${counted(tasks, "task")}
        </div>
      </th>
      <td role="cell" class="state"><${WorkflowBadge} state=${state} /></td>
      <td role="cell">
        <${StateCounts} counts=${counts}
          to=${(/** @type {State} */ each) => link(["workflows", id], { view: "list", state: each })} />
      </td>
      <td role="cell" data-title="Started"><${Ago} at=${created} /></td>
      <td role="cell" data-title=${workflow.ended_at ? "Took" : "Runs for"}>
        <${Took} from=${created} to=${workflow.ended_at} />
      </td>
      <td role="cell" class="row-actions">
        ${
          state === "running" &&
          html`<${CancelWorkflow} id=${id} changed=${changed} small>Cancel</${CancelWorkflow}>`
        }
      </td>
    </tr>`;
  },
);

/** @param {{ from: string, to: string | null }} props Null: it runs. */
const Took = ({ from, to }) =>
  html`${duration(secondsBetween(from, to ?? new Date(now.value).toISOString()))}`;
