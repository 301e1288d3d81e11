// @ts-check
// Short messages about what was done. They disappear by themselves.

import { html, signal } from "../lib/preact.js";

/** @import { Signal } from "../lib/preact.js" */

const SHOWN_MS = 5000;
/** @type {Signal<{ id: number, text: string }[]>} */
const toasts = signal([]);
let next = 0;

/** @param {string} text */
export function showToast(text) {
  const toast = { id: next++, text };
  toasts.value = [...toasts.value, toast];
  setTimeout(() => {
    toasts.value = toasts.value.filter((each) => each !== toast);
  }, SHOWN_MS);
}

/** The messages. They belong on the page once. */
export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${toasts.value.map(({ id, text }) => html`<div class="toast" key=${id}>${text}</div>`)}
</div>`;
