// @ts-check
// The fields of something, in a list.

import { html } from "../lib/preact.js";
import { link } from "../lib/router.js";

/** @import { Children } from "../lib/preact.js" */

/** A field, unless it does not apply. @param {{ name: string, if?: unknown, children: Children }} props */
export const Fact = ({ name, if: applies = true, children }) =>
  applies ? html`<dt>${name}</dt><dd>${children}</dd>` : null;

/** Tags, each with a link to the tasks that have it. @param {{ tags: Record<string, string> }} props */
export const Tags = ({ tags }) => html`<span class="row">
  ${Object.entries(tags).map(
    ([name, value]) =>
      html`<a key=${name} class="tag" href=${link("tasks", { tag: `${name}:${value}` })}>
        <bdi>${name}</bdi>: <bdi>${value}</bdi>
      </a>`,
  )}
</span>`;
