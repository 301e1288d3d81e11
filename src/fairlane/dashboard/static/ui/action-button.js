// Buttons that ask the server to do something.

import { may } from "../lib/session.js";
import { html, useState } from "../lib/preact.js";
import { ask } from "./dialog.js";
import { showToast } from "./toasts.js";

/**
 * A button that does `run()`, once at a time. An error is shown beside it; what `run` returns, if it is a
 * text, is said in a toast. `confirm`, a text or a function that promises one, is asked before.
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
  const [error, setError] = useState(null);
  const allowed = may(scope);

  // While it is busy it is not disabled: that would take the focus away from whoever pressed it.
  async function act() {
    if (busy) return;
    setBusy(true);
    setError(null);
    try {
      const question = typeof confirm === "function" ? await confirm() : confirm;
      if (question && !(await ask(question, { danger, label: children }))) return;
      const told = await run();
      if (typeof told === "string") showToast(told);
    } catch (failure) {
      setError(failure.message);
    } finally {
      setBusy(false);
    }
  }

  const look = ["button", primary && "primary", danger && "danger", small && "small"]
    .filter(Boolean)
    .join(" ");
  return html`<span class="action-button">
    <button type=${submit ? "submit" : "button"} class=${look} disabled=${disabled || !allowed}
      aria-busy=${busy}
      title=${allowed ? title : `This takes a token with the scope ${scope}.`} onClick=${act}>${children}
    </button>
    ${error && html`<span class="error-text" role="alert">${error}</span>`}
  </span>`;
}
