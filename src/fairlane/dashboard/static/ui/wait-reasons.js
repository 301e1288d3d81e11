// @ts-check
// Why a task waits.

import { get, segment } from "../lib/api.js";
import { html } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { fetched } from "./fetched.js";

/**
 * The reasons, the decisive ones first. They change with other tasks.
 *
 * @param {{ id: string, version: number }} props
 */
export function WaitReasons({ id, version }) {
  const why = useResource((abort) => get(`api/v1/tasks/${segment(id)}/why`, {}, abort), [id, version], {
    every: 2000,
  });
  return html`<div aria-live="polite">
    ${fetched(
      why,
      ({ reasons }) => html`<ul>
        ${reasons.map(({ code, message }) => html`<li key=${code + message}>${message}</li>`)}
        ${reasons.length === 0 && html`<li>Nothing holds it back: it is about to run.</li>`}
      </ul>`,
      1,
    )}
  </div>`;
}
