import { get, post } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { html } from "../lib/preact.js";
import { ActionButton } from "./action-button.js";
import { RateInput } from "./limit-inputs.js";

/** What is asked before everything is paused. */
export const PAUSE_QUESTION = "Pause everything? Tasks that run go on; no other begins until you resume.";

/** Pause everything, or let it go on. */
export const setPaused = (paused) => post("api/v1/control", { paused });

/** Stops and restarts everything, and limits how fast it goes; `changed` is called once it did. */
export function GlobalControls({ changed = () => {} }) {
  const { data, refresh } = useResource((abort) => get("api/v1/control", {}, abort), [], { every: 5000 });
  if (!data) return null;
  const then = (done) => done.then(refresh).then(changed);
  return html`
    <span class="muted" aria-hidden="true">Rate limit</span>
    <${RateInput} label="All types together" value=${data.rate_limit}
      set=${(rate_limit) => then(post("api/v1/control", { rate_limit }))} />
    ${
      data.paused
        ? html`<${ActionButton} primary
          run=${() => then(setPaused(false))}>Resume everything</${ActionButton}>`
        : html`<${ActionButton} confirm=${PAUSE_QUESTION}
          run=${() => then(setPaused(true))}>Pause everything</${ActionButton}>`
    }`;
}
