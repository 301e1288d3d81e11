// Light or dark: as the viewer's system has it, unless they chose.

import { signal } from "./view.js";

const KEY = "fairlane.theme";
const NEXT = { system: "light", light: "dark", dark: "system" };

/** "system", "light" or "dark". */
export const choice = signal(document.documentElement.dataset.theme ?? "system");

const dark = matchMedia("(prefers-color-scheme: dark)");

/** "light" or "dark": what is shown. */
export const theme = signal(current());
dark.addEventListener("change", () => { theme.value = current(); });

export function turn() {
  choice.value = NEXT[choice.value];
  if (choice.value === "system") {
    localStorage.removeItem(KEY);
    delete document.documentElement.dataset.theme;
  } else {
    localStorage.setItem(KEY, choice.value);
    document.documentElement.dataset.theme = choice.value;
  }
  theme.value = current();
}

function current() {
  return choice.value === "system" ? (dark.matches ? "dark" : "light") : choice.value;
}
