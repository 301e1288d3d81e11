// @ts-check
// How a resource is shown: while it is loading, after an error, and once its data is there.

import { html } from "../lib/preact.js";

/**
 * @import { Children } from "../lib/preact.js"
 * @import { Resource } from "../lib/resource.js"
 */

/** @param {{ error?: { message: string } | null, refresh?: () => void }} props */
export const ErrorBanner = ({ error, refresh }) =>
  error &&
  html`<div class="banner error" role="alert">
    <span>${error.message}</span>
    ${refresh && html`<button type="button" class="button small" onClick=${refresh}>Try again</button>`}
  </div>`;

/**
 * A placeholder, as high as what will take its place, so that nothing jumps.
 *
 * @param {{ rows?: number }} props
 */
export const Loading = ({ rows = 3 }) => html`<div class="loading" aria-busy="true" aria-label="Loading">
  ${Array.from({ length: rows }, (_, index) => html`<div key=${index}></div>`)}
</div>`;

/**
 * Show the data of a resource once it is there, and errors above it. It is a function and no component: so
 * the type of the data is known to `show`.
 *
 * @template T
 * @param {Resource<T>} resource
 * @param {(data: T) => Children} show
 * @param {number} [rows] How high the placeholder is.
 */
export function fetched({ data, error, refresh }, show, rows) {
  if (data === undefined && !error) return html`<${Loading} rows=${rows} />`;
  return html`<${ErrorBanner} error=${error} refresh=${refresh} />${data !== undefined && show(data)}`;
}
