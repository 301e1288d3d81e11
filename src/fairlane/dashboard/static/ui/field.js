// @ts-check
// A field of a form: its label, what it takes, and what is wrong with it.

import { html, useId } from "../lib/preact.js";

/**
 * @import { Children } from "../lib/preact.js"
 * @typedef {{ id: string, "aria-describedby": string, "aria-invalid": boolean }} Control The attributes of
 *   the input that belongs to the label.
 */

/**
 * @param {object} props
 * @param {string} props.label
 * @param {string} [props.note] What it takes, beside the label.
 * @param {Children} [props.hint] More about it, below.
 * @param {string} [props.error]
 * @param {(control: Control) => Children} props.input
 */
export function Field({ label, note, hint, error, input }) {
  const id = useId();
  const about = ["note", "error", "hint"].map((part) => `${id}-${part}`);
  const control = { id, "aria-describedby": about.join(" "), "aria-invalid": Boolean(error) };
  return html`<div class="field">
    <div class="field-head">
      <label for=${id}>${label}</label><span id=${about[0]} class="muted">${note}</span>
    </div>
    ${input(control)}
    <p id=${about[1]} class="error-text">${error}</p>
    <p id=${about[2]} class="muted">${hint}</p>
  </div>`;
}
