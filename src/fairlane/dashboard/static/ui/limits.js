// Inputs of limits, where zero or nothing means: none.

import { html, useEffect, useId, useState } from "../lib/view.js";
import { Action } from "./action.js";

/** Tasks a second. */
export const RateInput = (props) => html`<${Limit} ...${props} unit="tasks/s" step="any" />`;

/** Tasks at once. */
export const MostInput = (props) => html`<${Limit} ...${props} unit="at once" step="1" />`;

function Limit({ label, value, set, unit, step }) {
  const id = useId();
  const [text, setText] = useState(shown(value));
  useEffect(() => setText(shown(value)), [value]); // Somebody else may have set it.
  const changed = text !== shown(value);
  // Enter presses the button of a form.
  return html`<form class="limit" onSubmit=${(event) => event.preventDefault()}>
    <label for=${id} class="sr">${label}, ${unit}</label>
    <input id=${id} type="number" min="0" step=${step} placeholder="no limit" value=${text}
      onInput=${(event) => setText(event.target.value)} />
    <span class="dim">${unit}</span>
    ${
      changed &&
      html`<${Action} submit small primary run=${() =>
        set(text === "" || Number(text) === 0 ? null : Number(text))}>Set</${Action}>`
    }
  </form>`;
}

const shown = (value) => (value ? String(value) : "");
