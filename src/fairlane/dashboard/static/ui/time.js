// @ts-check
// Times, relative to now.

import { now } from "../lib/clock.js";
import { ago, exactTime } from "../lib/format.js";
import { html } from "../lib/preact.js";

/**
 * How long ago, or in how long; hover shows the exact time.
 *
 * @param {{ at: string | null, otherwise?: string }} props
 */
export function Ago({ at, otherwise = "–" }) {
  if (!at) return html`<span class="muted">${otherwise}</span>`;
  return html`<time datetime=${at} title=${exactTime(at)}>${ago(at, now.value)}</time>`;
}
