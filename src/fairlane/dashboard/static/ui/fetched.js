// What is shown of a resource: while it is loaded, when that fails, and when it is there.

import { html } from "../lib/preact.js";

/** An error in place of, or above, what could not be fetched. */
export const ErrorBanner = ({ error, refresh }) =>
  error &&
  html`<div class="banner error" role="alert">
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
    return error
      ? html`<${ErrorBanner} error=${error} refresh=${refresh} />`
      : html`<${Loading} rows=${rows} />`;
  return html`<${ErrorBanner} error=${error} refresh=${refresh} />${children(data)}`;
}
