// @ts-check
// Buttons that ask the server to do something.

import { html, useState } from "../lib/preact.js";
import { hasScope } from "../lib/session.js";
import { ask } from "./dialog.js";
import { showToast } from "./toasts.js";

/**
 * @import { Scope } from "../../types/api.js"
 * @import { Children } from "../lib/preact.js"
 */

/**
 * A button that runs an action, once at a time. An error is shown beside it.
 *
 * @param {object} props
 * @param {() => unknown} props.run If it returns or promises a text, a toast shows it.
 * @param {Children | (() => Children | Promise<Children>)} [props.confirm] A question to ask before.
 * @param {Scope} [props.scope]
 * @param {boolean} [props.danger]
 * @param {boolean} [props.primary]
 * @param {boolean} [props.small]
 * @param {boolean} [props.disabled]
 * @param {boolean} [props.submit]
 * @param {string} [props.title]
 * @param {Children} props.children
 */
export function ActionButton({
  run,
  confirm,
  scope = "admin",
  danger = false,
  primary = false,
  small = false,
  disabled = false,
  submit = false,
  title,
  children,
}) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(/** @type {string | null} */ (null));
  const allowed = hasScope(scope);

  // A busy button is not disabled: that would take the focus away from it.
  async function act() {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const question = typeof confirm === "function" ? await confirm() : confirm;
      if (question && !(await ask(question, { danger, label: children }))) return;
      const message = await run();
      if (typeof message === "string") showToast(message);
    } catch (failure) {
      setError(/** @type {Error} */ (failure).message);
    } finally {
      setBusy(false);
    }
  }

  const style = ["button", primary && "primary", danger && "danger", small && "small"];
  return html`<span class="action-button">
    <button type=${submit ? "submit" : "button"} class=${style.filter(Boolean).join(" ")}
      disabled=${disabled || !allowed} aria-busy=${busy}
      title=${allowed ? title : `This takes a token with the scope ${scope}.`} onClick=${act}>
      ${children}
    </button>
    ${error && html`<span class="error-text" role="alert">${error}</span>`}
  </span>`;
}
