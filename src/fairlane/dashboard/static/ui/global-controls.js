// @ts-check
// Pause, resume and the rate limit of everything.

import { get, post } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { boundTo } from "../lib/session.js";
import { ActionButton } from "./action-button.js";
import { RateInput } from "./limit-inputs.js";

export const PAUSE_QUESTION =
  "Pause everything? Running tasks continue; no other task starts until you resume.";

/** @param {boolean} paused */
export const setPaused = (paused) => post("api/v1/control", { paused });

/** @param {{ changed?: () => void }} props `changed` is called after a change. */
export function GlobalControls({ changed = () => {} }) {
  const load = async (/** @type {AbortSignal} */ abort) =>
    boundTo.value === null ? get("api/v1/control", {}, abort) : null;
  const { data, refresh } = useResource(load, [boundTo.value], { every: 5000 });
  if (!data) return null;
  const then = (/** @type {Promise<unknown>} */ change) => change.then(refresh).then(changed);
  const limit = (/** @type {number | null} */ rate_limit) => then(post("api/v1/control", { rate_limit }));
  return html`
    <span class="muted" aria-hidden="true">Rate limit</span>
    <${RateInput} label="All types together" value=${data.rate_limit} set=${limit} />
    ${
      data.paused
        ? html`<${ActionButton} primary run=${() => then(setPaused(false))}>
          Resume everything
        </${ActionButton}>`
        : html`<${ActionButton} confirm=${PAUSE_QUESTION} run=${() => then(setPaused(true))}>
          Pause everything
        </${ActionButton}>`
    }`;
}
