import { get, segment } from "../lib/api.js";
import { useResource } from "../lib/resource.js";
import { html } from "../lib/preact.js";
import { Fetched } from "./fetched.js";

/** Why a task does not run: the decisive reasons first. They change with what others do. */
export function WaitReasons({ id, version }) {
  const why = useResource((abort) => get(`api/v1/tasks/${segment(id)}/why`, {}, abort), [id, version], {
    every: 2000,
  });
  return html`<div aria-live="polite"><${Fetched} resource=${why} rows=${1}>${({ reasons }) => html`<ul>
    ${reasons.map(({ code, message }) => html`<li key=${code + message}>${message}</li>`)}
    ${reasons.length === 0 && html`<li>Nothing holds it back: it is about to run.</li>`}
  </ul>`}</${Fetched}></div>`;
}
