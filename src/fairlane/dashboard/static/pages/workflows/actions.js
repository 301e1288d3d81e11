// @ts-check
// What an operator can do with a workflow.

import { post, remove, segment } from "../../lib/api.js";
import { counted, isolated } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { link, navigate } from "../../lib/router.js";
import { ActionButton } from "../../ui/action-button.js";

const CANCEL_QUESTION =
  "Cancel this workflow? Its tasks that wait will not run, and workers are asked to stop those that run.";

const RESUME_QUESTION =
  "Resume this workflow? Tasks that failed or were cancelled run again, and those that depend on them. " +
  "Completed ones keep their results.";
const DELETE_QUESTION = "Delete this workflow, with all of its tasks? They cannot be restored.";

/** @typedef {{ id: string, changed: () => Promise<unknown> }} Props `id`: the workflow's. */

/** @param {Props & { small?: boolean, children: string }} props */
export function CancelWorkflow({ id, changed, small = false, children }) {
  async function run() {
    const { applied } = await post(`api/v1/workflows/${segment(id)}/cancel`);
    await changed();
    return `${counted(applied, "task")} cancelled.`;
  }
  return html`<${ActionButton} danger small=${small} scope="submit" confirm=${CANCEL_QUESTION} run=${run}>
    ${children}
  </${ActionButton}>`;
}

/** Run again what failed or was cancelled. @param {Props} props */
export const ResumeWorkflow = ({ id, changed }) => html`<${ActionButton} primary confirm=${RESUME_QUESTION}
  run=${() => resume(id, null, changed)}>
  Resume workflow
</${ActionButton}>`;

/**
 * Run a task again, even if it is completed, and all that depend on it.
 *
 * @param {Props & { name: string }} props `name`: the task's.
 */
export function ResumeFrom({ id, name, changed }) {
  const question =
    `Resume from ${isolated(name)}? It runs again, with all tasks that depend on it, ` +
    "and with those of the workflow that failed or were cancelled.";
  return html`<${ActionButton} small confirm=${question} run=${() => resume(id, name, changed)}>
    Resume from here
  </${ActionButton}>`;
}

/** @param {string} id @param {string | null} from @param {() => Promise<unknown>} changed */
async function resume(id, from, changed) {
  const { applied } = await post(`api/v1/workflows/${segment(id)}/resume`, { from });
  await changed();
  return applied === 0 ? "There was nothing to resume." : `${counted(applied, "task")} to run again.`;
}

/** @param {{ id: string }} props */
export function DeleteWorkflow({ id }) {
  async function run() {
    await remove(`api/v1/workflows/${segment(id)}`);
    navigate(link("workflows"), { replace: true });
    return "Deleted.";
  }
  return html`<${ActionButton} danger confirm=${DELETE_QUESTION} run=${run}>Delete</${ActionButton}>`;
}
