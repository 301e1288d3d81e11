// @ts-check
// The heading and the panels of a page.

import { html } from "../lib/preact.js";

/** @import { Children } from "../lib/preact.js" */

/**
 * A part of a page.
 *
 * @param {object} props
 * @param {string} [props.title]
 * @param {Children} [props.hint] A remark beside the title.
 * @param {Children} [props.tools] Buttons and links at the right.
 * @param {boolean} [props.flush] Let the content reach the sides.
 * @param {Children} [props.children]
 */
export const Panel = ({ title, hint, tools, flush = false, children }) => html`<section class="panel">
  ${
    title &&
    html`<header>
      <h2>${title}</h2>
      ${hint && html`<span class="muted">${hint}</span>`}
      ${tools && html`<div class="tools">${tools}</div>`}
    </header>`
  }
  <div class=${flush ? "flush" : "body"}>${children}</div>
</section>`;

/** The heading of a page. @param {{ title: string, children?: Children }} props */
export const Heading = ({ title, children }) =>
  html`<div class="page-heading"><h1>${title}</h1><div class="tools">${children}</div></div>`;
