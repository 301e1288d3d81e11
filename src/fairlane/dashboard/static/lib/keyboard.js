// @ts-check
// Keys that work anywhere on a page.

import { useLayoutEffect, useRef } from "./preact.js";

/**
 * Bind keys, by name ("j", "?", "mod+k": Ctrl or Cmd), to actions. An action that returns false did nothing.
 *
 * @param {Record<string, (event: KeyboardEvent) => unknown>} keys
 */
export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  // Before the page is painted: what is on the screen answers to its keys.
  useLayoutEffect(() => {
    /** @param {KeyboardEvent} event */
    const press = (event) => {
      const mod = event.ctrlKey || event.metaKey;
      if (event.defaultPrevented || event.altKey || goesElsewhere(event.target, mod)) return;
      const act = latest.current[mod ? `mod+${event.key.toLowerCase()}` : event.key];
      if (act && act(event) !== false) event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

/**
 * Whether a key belongs to a dialog, or to a field that is being typed into.
 *
 * @param {EventTarget | null} target
 * @param {boolean} mod
 */
function goesElsewhere(target, mod) {
  if (document.querySelector("dialog[open]")) return true;
  return !mod && target instanceof Element && target.matches("input:not([type=checkbox]), select, textarea");
}
