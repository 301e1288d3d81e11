import { html } from "../lib/preact.js";

/** A share of something as a bar. */
export const Meter = ({
  value,
  most,
  label,
  tone,
}) => html`<span class="meter" role="img" aria-label=${label} title=${label} data-tone=${tone}>
  <span style=${{ width: `${Math.min(100, most ? (100 * value) / most : 0)}%` }}></span>
</span>`;
