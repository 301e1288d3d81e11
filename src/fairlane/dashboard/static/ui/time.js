import { now } from "../lib/clock.js";
import { ago, exactTime } from "../lib/format.js";
import { html } from "../lib/preact.js";

/** How long ago something was, or in how long it will be; the exact time on hover. */
export function Ago({ at, otherwise = "–" }) {
  if (!at) return html`<span class="muted">${otherwise}</span>`;
  return html`<time datetime=${at} title=${exactTime(at)}>${ago(at, now.value)}</time>`;
}
