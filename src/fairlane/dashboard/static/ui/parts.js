// Parts of pages.

import { html } from "../lib/view.js";

/** A part of a page with a heading, and what can be done there. */
export const Panel = ({ title, hint, tools, flush = false, children }) => html`<section class="panel">
  ${
    title &&
    html`<header><h2>${title}</h2>${hint && html`<span class="dim">${hint}</span>`}${
      tools && html`<div class="tools">${tools}</div>`
    }</header>`
  }
  <div class=${flush ? "flush" : "body"}>${children}</div>
</section>`;

/** The head of a page. */
export const Heading = ({ title, children }) =>
  html`<div class="heading"><h1>${title}</h1><div class="tools">${children}</div></div>`;

/** What is said where there is nothing yet: what it would be, and the first step towards it. */
export const Empty = ({ title, children }) => html`<div class="empty"><h3>${title}</h3>${children}</div>`;

/** An error in place of, or above, what could not be fetched. */
export const Trouble = ({ error, refresh }) =>
  error &&
  html`<div class="banner trouble" role="alert">
    <span>${error.message}</span>${
      refresh && html`<button type="button" class="button small" onClick=${refresh}>Try again</button>`
    }
  </div>`;

/** What stands for something that is on its way: as high as that will be, so that nothing jumps. */
export const Loading = ({ rows = 3 }) => html`<div class="loading" aria-busy="true" aria-label="Loading">
  ${Array.from({ length: rows }, (_, index) => html`<div key=${index}></div>`)}
</div>`;

/** Something out of `resource`: `children(data)` once it is there, with trouble told above it. */
export function Fetched({ resource, rows, children }) {
  const { data, error, refresh } = resource;
  if (data === undefined)
    return error ? html`<${Trouble} error=${error} refresh=${refresh} />` : html`<${Loading} rows=${rows} />`;
  return html`<${Trouble} error=${error} refresh=${refresh} />${children(data)}`;
}

/** A share of something as a bar. */
export const Meter = ({
  value,
  most,
  label,
  tone,
}) => html`<span class="meter" role="img" aria-label=${label} title=${label} data-tone=${tone}>
  <span style=${{ width: `${Math.min(100, most ? (100 * value) / most : 0)}%` }}></span>
</span>`;
