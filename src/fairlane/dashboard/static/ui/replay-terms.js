import { PRIORITIES } from "../lib/states.js";
import { html, useEffect } from "../lib/preact.js";

/**
 * On which terms a task, or those that a question is about, are made ready again; chosen into `terms`, as the
 * API takes them.
 */
export function ReplayTerms({
  terms,
  task,
  question = `Make this ${task.task_type} ready to run again?`,
  before = `as it was: ${task.priority}`,
}) {
  useEffect(() => {
    Object.assign(terms, { reset_retry_count: true, new_priority: null });
  }, []);
  return html`
    <span>${question}</span>
    <span class="replay-terms">
      <label class="inline"><input type="checkbox" defaultChecked onChange=${(event) => {
        terms.reset_retry_count = event.target.checked;
      }} />
        Allow all ${task ? "its" : "their"} retries anew</label>
      <label class="inline">Priority
        <select onChange=${(event) => {
          terms.new_priority = event.target.value || null;
        }}>
          <option value="">${before}</option>
          ${PRIORITIES.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>
    </span>`;
}
