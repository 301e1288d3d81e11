// @ts-check
// A button that copies a text to the clipboard.

import { html } from "../lib/preact.js";
import { Icon } from "./icons.js";
import { showToast } from "./toasts.js";

/**
 * @param {object} props
 * @param {string | (() => string)} props.text
 * @param {string} props.what
 * @param {string} [props.children] A word beside the icon, where there are several.
 */
export function CopyButton({ text, what, children }) {
  async function copy() {
    await toClipboard(typeof text === "function" ? text() : text);
    showToast(`Copied ${what}.`);
  }
  const label = `Copy ${what}`;
  return html`<button type="button" class="button small" title=${label} aria-label=${label} onClick=${copy}>
    <${Icon} name="copy" />${children}
  </button>`;
}

/** @param {string} text */
async function toClipboard(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers offer no clipboard to a page that came over plain HTTP: copy a selection instead.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
