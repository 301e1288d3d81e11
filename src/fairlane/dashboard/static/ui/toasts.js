// Short messages about what was done.

import { html, signal } from "../lib/preact.js";

const SHOWN_MS = 5000;
const toasts = signal([]);
let next = 0;

/** Say something; it goes by itself. */
export function showToast(text) {
  const toast = { id: next++, text };
  toasts.value = [...toasts.value, toast];
  setTimeout(() => {
    toasts.value = toasts.value.filter((each) => each !== toast);
  }, SHOWN_MS);
}

/** Where they appear: once on the page. */
export const Toasts = () => html`<div class="toasts" role="status" aria-live="polite">
  ${toasts.value.map(({ id, text }) => html`<div class="toast" key=${id}>${text}</div>`)}
</div>`;
