// @ts-check
// A bar that shows a share of something.

import { html } from "../lib/preact.js";

/** @param {{ value: number, most: number, label: string, tone?: "good" | "warning" }} props */
export function Meter({ value, most, label, tone }) {
  const percent = Math.min(100, most ? (100 * value) / most : 0);
  return html`<span class="meter" role="img" aria-label=${label} title=${label} data-tone=${tone}>
    <span style=${{ width: `${percent}%` }}></span>
  </span>`;
}
