import { html } from "../lib/preact.js";

/** A part of a page with a heading, and what can be done there. */
export const Panel = ({ title, hint, tools, flush = false, children }) => html`<section class="panel">
  ${
    title &&
    html`<header><h2>${title}</h2>${hint && html`<span class="muted">${hint}</span>`}${
      tools && html`<div class="tools">${tools}</div>`
    }</header>`
  }
  <div class=${flush ? "flush" : "body"}>${children}</div>
</section>`;

/** The head of a page. */
export const Heading = ({ title, children }) =>
  html`<div class="page-heading"><h1>${title}</h1><div class="tools">${children}</div></div>`;
