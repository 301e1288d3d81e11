// @ts-check
// The question before a replay, with its options.

import { onChecked, onValue } from "../lib/inputs.js";
import { html, useEffect } from "../lib/preact.js";
import { PRIORITIES } from "../lib/states.js";

/**
 * @import { ReplayTerms as Terms } from "../../types/api.js"
 * @typedef {typeof PRIORITIES[number]} Band
 */

/**
 * Write what is chosen into `terms`, as the API takes them.
 *
 * @param {{ terms: Terms, question: string, many?: boolean, priority: string }} props
 */
export function ReplayTerms({ terms, question, many = false, priority }) {
  useEffect(() => {
    Object.assign(terms, { reset_retry_count: true, new_priority: null });
  }, []);
  const setReset = (/** @type {boolean} */ reset) => {
    terms.reset_retry_count = reset;
  };
  const setPriority = (/** @type {string} */ name) => {
    terms.new_priority = /** @type {Band | ""} */ (name) || null;
  };
  return html`
    <span>${question}</span>
    <span class="replay-terms">
      <label class="inline"><input type="checkbox" defaultChecked onChange=${onChecked(setReset)} />
        Reset ${many ? "their retry counts" : "its retry count"}</label>
      <label class="inline">Priority
        <select onChange=${onValue(setPriority)}>
          <option value="">${priority}</option>
          ${PRIORITIES.map((name) => html`<option key=${name} value=${name}>${name}</option>`)}
        </select></label>
    </span>`;
}
