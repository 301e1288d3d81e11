import { html } from "../lib/preact.js";
import { Icon } from "./icons.js";
import { showToast } from "./toasts.js";

/** A button that copies a text, or what a function makes of something once it is wanted. */
export function CopyButton({ text, what, children }) {
  async function copy() {
    await copied(typeof text === "function" ? text() : text);
    showToast(`Copied ${what}.`);
  }
  return html`<button type="button" class="button small" title=${`Copy ${what}`} aria-label=${`Copy ${what}`}
    onClick=${copy}>
    <${Icon} name="copy" />${children}
  </button>`;
}

async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Over plain HTTP from another machine there is no clipboard but that of the selection.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}
