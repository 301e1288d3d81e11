// Where one types where to go: to a page, a task, or the tasks of a type, queue, tag or state; and commands.

import { useKeys } from "../lib/keys.js";
import { html, signal } from "../lib/view.js";
import { Icon } from "./icons.js";
import { Finder } from "./palette/finder.js";
import { Shortcuts } from "./palette/shortcuts.js";

const shown = signal(null);
const show = (what) => () => { shown.value = what; };
const MOD = /Mac|iP(hone|ad)/.test(navigator.platform) ? "⌘" : "Ctrl ";

/** Looks like a field to search in. */
export const PaletteButton = () => html`<button type="button" class="seek" title="Search" aria-keyshortcuts="Control+K" onClick=${show("finder")}>
  <${Icon} name="search" /><span>Search</span><kbd>${MOD}K</kbd>
</button>`;

/** Where it appears: once on the page. */
export function Palette() {
  useKeys({ "mod+k": show("finder"), "/": show("finder"), "?": show("shortcuts") });
  const close = show(null);
  if (shown.value === "finder") return html`<${Finder} close=${close} shortcuts=${show("shortcuts")} />`;
  return shown.value === "shortcuts" && html`<${Shortcuts} close=${close} />`;
}
