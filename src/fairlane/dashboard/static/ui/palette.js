// Where one types where to go: to a page, a task, or the tasks of a type, queue, tag or state; and commands.

import { useKeys } from "../lib/keys.js";
import { html, signal } from "../lib/view.js";
import { Icon } from "./icons.js";
import { say } from "./toasts.js";

// Loaded when they are asked for: what comes first stays small.
const DIALOGS = {
  finder: async () => (await import("./palette/finder.js")).Finder,
  shortcuts: async () => (await import("./palette/shortcuts.js")).Shortcuts,
};
const MOD = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : "Ctrl ";

const shown = signal(null);
const close = () => {
  shown.value = null;
};
const finder = () => show("finder");
const shortcuts = () => show("shortcuts");

async function show(name) {
  try {
    shown.value = { dialog: await DIALOGS[name]() };
  } catch {
    say("The server is away, or has been updated: load the page anew.");
  }
}

/** Looks like a field to search in. */
export const PaletteButton =
  () => html`<button type="button" class="seek" title="Search" aria-keyshortcuts="Control+K"
    onClick=${finder}>
    <${Icon} name="search" /><span>Search</span><kbd>${MOD}K</kbd>
  </button>`;

/** Where it appears: once on the page. */
export function Palette() {
  useKeys({ "mod+k": finder, "/": finder, "?": shortcuts });
  return shown.value && html`<${shown.value.dialog} close=${close} shortcuts=${shortcuts} />`;
}
