// Where one types where to go: to a page, a task, or the tasks of a type, queue, tag or state; and commands.

import { useKeys } from "../lib/keyboard.js";
import { html, signal } from "../lib/preact.js";
import { Icon } from "./icons.js";
import { showToast } from "./toasts.js";

// Loaded when they are asked for: what comes first stays small.
const DIALOGS = {
  search: async () => (await import("./palette/search-dialog.js")).SearchDialog,
  shortcuts: async () => (await import("./palette/shortcut-help.js")).ShortcutHelp,
};
const MOD = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : "Ctrl ";

const shown = signal(null);
const close = () => {
  shown.value = null;
};
const search = () => show("search");
const shortcuts = () => show("shortcuts");

async function show(name) {
  try {
    shown.value = { dialog: await DIALOGS[name]() };
  } catch {
    showToast("The server is away, or has been updated: load the page anew.");
  }
}

/** Looks like a field to search in. */
export const PaletteButton =
  () => html`<button type="button" class="search-button" title="Search" aria-keyshortcuts="Control+K"
    onClick=${search}>
    <${Icon} name="search" /><span>Search</span><kbd>${MOD}K</kbd>
  </button>`;

/** Where it appears: once on the page. */
export function Palette() {
  useKeys({ "mod+k": search, "/": search, "?": shortcuts });
  return shown.value && html`<${shown.value.dialog} close=${close} shortcuts=${shortcuts} />`;
}
