// @ts-check
// What a workflow is called, how it stands, and what an operator can do with it.

import { now } from "../../lib/clock.js";
import { counted, duration, secondsBetween, shortId } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link } from "../../lib/router.js";
import { CopyButton } from "../../ui/copy-button.js";
import { Fact } from "../../ui/facts.js";
import { TaskLink } from "../../ui/links.js";
import { Panel } from "../../ui/panel.js";
import { StateCounts } from "../../ui/state-counts.js";
import { Ago } from "../../ui/time.js";
import { CancelWorkflow, DeleteWorkflow, ResumeWorkflow } from "../workflows/actions.js";
import { WorkflowBadge } from "../workflows/badge.js";
import { mermaidOf } from "./mermaid.js";
import { countStates } from "./words.js";

/**
 * @import { State, WorkflowState, WorkflowView } from "../../../types/api.js"
 * @import { Shown } from "../workflow.js"
 */

/** @type {Set<WorkflowState>} */
const RESUMABLE = new Set(["failed", "cancelled"]);
const MOST_FAILURES = 3;

/** @param {{ workflow: WorkflowView, refresh: () => Promise<void> }} props */
export function Head({ workflow, refresh }) {
  const { workflow_id: id, name, status } = workflow;
  return html`<div class="page-heading">
    <div>
      <a class="muted" href=${link("workflows")}>Workflows</a>
      <h1 class="row"><span>${name ?? shortId(id)}</span> <${WorkflowBadge} state=${status} /></h1>
      <div class="row muted">
        <span class="mono" title=${id}>${shortId(id)}</span> <${CopyButton} text=${id} what="the id" />
      </div>
    </div>
    <div class="tools">
      <${CopyButton} text=${() => mermaidOf(workflow)} what="the Mermaid text">Mermaid</${CopyButton}>
      <${CopyButton} text=${() => JSON.stringify(workflow, null, 2)} what="the JSON">JSON</${CopyButton}>
      ${RESUMABLE.has(status) && html`<${ResumeWorkflow} id=${id} changed=${refresh} />`}
      ${
        status === "running"
          ? html`<${CancelWorkflow} id=${id} changed=${refresh}>Cancel workflow</${CancelWorkflow}>`
          : html`<${DeleteWorkflow} id=${id} />`
      }
    </div>
  </div>`;
}

/** @param {{ shown: Shown }} props */
export function Summary({ shown }) {
  const { workflow, byId, path } = shown;
  const { created_at: created, ended_at: ended, complete, tasks } = workflow;
  const end = ended ?? new Date(now.value).toISOString();
  return html`<${Panel}>
    <${StateCounts} counts=${countStates([...byId.keys()], byId)}
      to=${(/** @type {State} */ state) => shown.to({ view: "list", state })} />
    <dl class="facts workflow-facts">
      <${Fact} name="Tasks">
        ${tasks.length}${!complete && html` <span class="muted">left: the others were deleted</span>`}
      </${Fact}>
      <${Fact} name="Submitted"><${Ago} at=${created} /></${Fact}>
      <${Fact} name=${ended ? "Took" : "Runs for"}>${duration(secondsBetween(created, end))}</${Fact}>
      <${Fact} name="If a task fails" if=${workflow.on_failure === "cancel"}>
        all others are cancelled
      </${Fact}>
      <${Fact} name="Critical path" if=${path.size > 1}>${counted(path.size, "task")}</${Fact}>
    </dl>
  </${Panel}>`;
}

/** The first tasks that failed, rather than because of others. @param {{ workflow: WorkflowView }} props */
export function Failures({ workflow: { tasks } }) {
  const failed = tasks
    .filter(({ status, doomed }) => !doomed && (status === "failed" || status === "dead_letter"))
    .sort((one, other) => String(one.ended_at).localeCompare(String(other.ended_at)));
  if (failed.length === 0) return null;
  return html`<${Panel} title="What failed" hint=${failed.length > 1 && counted(failed.length, "task")} flush>
    <ul class="item-list failures">${failed.slice(0, MOST_FAILURES).map(
      ({ task_id: id, name, error, ended_at: at }) => html`<li key=${id}>
        <b>${name}</b><span class="reason">${error}</span><${Ago} at=${at} /><${TaskLink} id=${id} />
      </li>`,
    )}</ul>
  </${Panel}>`;
}
