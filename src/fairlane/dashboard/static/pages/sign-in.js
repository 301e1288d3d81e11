// @ts-check
import { html, useState } from "../lib/preact.js";
import { signIn } from "../lib/session.js";

export function SignIn() {
  const [error, setError] = useState(/** @type {string | null} */ (null));
  const [busy, setBusy] = useState(false);

  /** @param {SubmitEvent} event */
  async function submit(event) {
    event.preventDefault();
    const form = new FormData(/** @type {HTMLFormElement} */ (event.target));
    setBusy(true);
    setError(null);
    try {
      await signIn(String(form.get("token")).trim());
    } catch (failure) {
      setError(/** @type {Error} */ (failure).message);
    } finally {
      setBusy(false);
    }
  }

  return html`<main class="sign-in">
    <form class="panel body" onSubmit=${submit}>
      <h1>Fairlane</h1>
      <label for="token">Token</label>
      <input id="token" name="token" type="password" autocomplete="current-password" required autofocus
        aria-describedby="hint" />
      ${error && html`<p class="error-text" role="alert">${error}</p>`}
      <button class="button primary" disabled=${busy}>Sign in</button>
      <p id="hint" class="muted">
        Make one with <code>fairlane token create --name you --scope read</code>; changes need
        the scope <code>admin</code>.
      </p>
    </form>
  </main>`;
}
