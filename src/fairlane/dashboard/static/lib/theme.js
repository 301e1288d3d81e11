// @ts-check
// Light or dark: as the viewer chose, or else as their system is set.

import { computed, effect, signal } from "./preact.js";

const KEY = "fairlane.theme";
/** @type {Record<string, string>} */
const NEXT = { system: "light", light: "dark", dark: "system" };

const system = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(system.matches);
system.addEventListener("change", () => {
  dark.value = system.matches;
});

/** "system", "light" or "dark". */
export const choice = signal(localStorage.getItem(KEY) ?? "system");

/** "light" or "dark": what is shown. */
export const theme = computed(() =>
  choice.value === "system" ? (dark.value ? "dark" : "light") : choice.value,
);

effect(() => {
  document.documentElement.dataset.theme = theme.value;
});

export function nextTheme() {
  choice.value = NEXT[choice.value] ?? "system";
  if (choice.value === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, choice.value);
}
