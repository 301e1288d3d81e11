// Keys that do something wherever one is on a page.

import { useEffect, useRef } from "./preact.js";

/** Keys by name ("j", "?", "mod+k": Ctrl or Cmd) and what they do; what returns false did nothing. */
export function useKeys(keys) {
  const latest = useRef(keys);
  latest.current = keys;
  useEffect(() => {
    const press = (event) => {
      const held = event.ctrlKey || event.metaKey;
      if (event.defaultPrevented || event.altKey || busy(event.target, held)) return;
      const act = latest.current[held ? `mod+${event.key.toLowerCase()}` : event.key];
      if (act && act(event) !== false) event.preventDefault();
    };
    document.addEventListener("keydown", press);
    return () => document.removeEventListener("keydown", press);
  }, []);
}

// Whether the keys go elsewhere: into a text that is being typed, or to a dialog.
function busy(target, held) {
  if (document.querySelector("dialog[open]")) return true;
  return !held && target.matches("input:not([type=checkbox]), select, textarea");
}
