// @ts-check
// What an operator can do with a workflow.

import { post, segment } from "../../lib/api.js";
import { counted } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";

const CANCEL_QUESTION =
  "Cancel this workflow? Its tasks that wait will not run, and workers are asked to stop those that run.";

/**
 * @param {object} props
 * @param {string} props.id
 * @param {() => Promise<unknown>} props.changed
 * @param {boolean} [props.small]
 * @param {string} props.children
 */
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
