// @ts-check
// The list of keys.

import { html } from "../../lib/preact.js";
import { Dialog } from "../dialog.js";

/** @type {[keys: string[], text: string][]} */
const KEYS = [
  [["Ctrl K", "⌘ K", "/"], "Search, and commands"],
  [["j", "↓"], "Next task"],
  [["k", "↑"], "Previous task"],
  [["Enter"], "Open the task"],
  [["x"], "Select or unselect the task"],
  [["Shift x", "Shift click"], "Select all from the last selected task"],
  [["Escape"], "Clear the selection, close a dialog"],
  [["?"], "This list"],
];

/** @param {{ close: () => void }} props */
export const ShortcutHelp = ({ close }) => html`<${Dialog} labelledBy="shortcuts" close=${close}>
  <h2 id="shortcuts">Keys</h2>
  <dl class="shortcut-list">
    ${KEYS.map(
      ([keys, text]) => html`<div key=${text}>
        <dt>${keys.map((key) => html`<kbd key=${key}>${key}</kbd> `)}</dt>
        <dd>${text}</dd>
      </div>`,
    )}
  </dl>
  <div class="row align-end"><button type="button" class="button" onClick=${close}>Close</button></div>
</${Dialog}>`;
