// @ts-check
// The command palette: search for pages, tasks, types, queues, tags and states, and run commands.

import { useKeys } from "../lib/keyboard.js";
import { html, signal } from "../lib/preact.js";
import { Icon } from "./icons.js";
import { showToast } from "./toasts.js";

/**
 * @import { Signal } from "../lib/preact.js"
 * @import { SearchDialog } from "./palette/search-dialog.js"
 * @import { ShortcutHelp } from "./palette/shortcut-help.js"
 */

// Loaded on demand, to keep the first view small.
const DIALOGS = {
  search: async () => (await import("./palette/search-dialog.js")).SearchDialog,
  shortcuts: async () => (await import("./palette/shortcut-help.js")).ShortcutHelp,
};
const MOD = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : "Ctrl ";

/** @type {Signal<{ dialog: typeof SearchDialog | typeof ShortcutHelp } | null>} */
const shown = signal(null);
const close = () => {
  shown.value = null;
};
const search = () => show("search");
const shortcuts = () => show("shortcuts");

/** @param {keyof typeof DIALOGS} name */
async function show(name) {
  try {
    shown.value = { dialog: await DIALOGS[name]() };
  } catch {
    showToast("The server is away, or has been updated: reload the page.");
  }
}

/** A button that looks like a search field. */
export const PaletteButton = () =>
  html`<button type="button" class="search-button" title="Search" aria-keyshortcuts="Control+K"
    onClick=${search}>
    <${Icon} name="search" /><span>Search</span><kbd>${MOD}K</kbd>
  </button>`;

/** The dialog that is open. It belongs on the page once. */
export function Palette() {
  useKeys({ "mod+k": search, "/": search, "?": shortcuts });
  return shown.value && html`<${shown.value.dialog} close=${close} shortcuts=${shortcuts} />`;
}
