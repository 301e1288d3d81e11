// @ts-check
// Inputs of limits. Zero or nothing means: no limit.

import { onSubmit, onValue } from "../lib/inputs.js";
import { html, useEffect, useId, useState } from "../lib/preact.js";
import { ActionButton } from "./action-button.js";

/** @typedef {{ label: string, value: number, set: (limit: number | null) => unknown }} Props */

/** @param {Props} props */
export const RateInput = (props) => html`<${LimitInput} ...${props} unit="tasks/s" step="any" />`;

/** @param {Props} props */
export const ConcurrencyInput = (props) => html`<${LimitInput} ...${props} unit="at once" step="1" />`;

/** @param {Props} props */
export const TimeoutInput = (props) => html`<${LimitInput} ...${props} unit="seconds" step="any" />`;

/** @param {Props & { unit: string, step: string }} props */
function LimitInput({ label, value, set, unit, step }) {
  const id = useId();
  const [text, setText] = useState(textOf(value));
  useEffect(() => setText(textOf(value)), [value]); // Somebody else may have changed it.
  const changed = text !== textOf(value);
  // In a form, Enter presses the button.
  return html`<form class="limit-input" onSubmit=${onSubmit()}>
    <label for=${id} class="visually-hidden">${label}, ${unit}</label>
    <input id=${id} type="number" min="0" step=${step} placeholder="no limit" value=${text}
      onInput=${onValue(setText)} />
    <span class="muted">${unit}</span>
    ${
      changed &&
      html`<${ActionButton} submit small primary run=${() => set(Number(text) || null)}>Set</${ActionButton}>`
    }
  </form>`;
}

/** @param {number} value */
const textOf = (value) => (value ? String(value) : "");
