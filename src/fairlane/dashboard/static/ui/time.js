import { now } from "../lib/clock.js";
import { ago, moment } from "../lib/format.js";
import { html } from "../lib/view.js";

/** How long ago something was, or in how long it will be; the exact time on hover. */
export function Ago({ at, otherwise = "–" }) {
  if (!at) return html`<span class="dim">${otherwise}</span>`;
  return html`<time datetime=${at} title=${moment(at)}>${ago(at, now.value)}</time>`;
}
