// Inputs of limits, where zero or nothing means: none.

import { html, useEffect, useId, useState } from "../lib/preact.js";
import { ActionButton } from "./action-button.js";

/** Tasks a second. */
export const RateInput = (props) => html`<${Limit} ...${props} unit="tasks/s" step="any" />`;

/** Tasks at once. */
export const ConcurrencyInput = (props) => html`<${Limit} ...${props} unit="at once" step="1" />`;

function Limit({ label, value, set, unit, step }) {
  const id = useId();
  const [text, setText] = useState(shown(value));
  useEffect(() => setText(shown(value)), [value]); // Somebody else may have set it.
  const changed = text !== shown(value);
  // Enter presses the button of a form.
  return html`<form class="limit-input" onSubmit=${(event) => event.preventDefault()}>
    <label for=${id} class="visually-hidden">${label}, ${unit}</label>
    <input id=${id} type="number" min="0" step=${step} placeholder="no limit" value=${text}
      onInput=${(event) => setText(event.target.value)} />
    <span class="muted">${unit}</span>
    ${
      changed &&
      html`<${ActionButton} submit small primary run=${() =>
        set(text === "" || Number(text) === 0 ? null : Number(text))}>Set</${ActionButton}>`
    }
  </form>`;
}

const shown = (value) => (value ? String(value) : "");
