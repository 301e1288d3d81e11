// @ts-check
// Commands that work on every page.

import { boundTo, hasScope, session, signOut } from "../../lib/session.js";
import { choice, nextTheme } from "../../lib/theme.js";
import { ask } from "../dialog.js";
import { PAUSE_QUESTION, setPaused } from "../global-controls.js";
import { showToast } from "../toasts.js";

/** @typedef {{ label: string, hint?: string, run: () => void }} Command */

/** Return the commands that the viewer may use. @param {() => void} shortcuts */
export function commands(shortcuts) {
  const admin = hasScope("admin") && boundTo.value === null;
  /** @type {(Command | false | undefined)[]} */
  const all = [
    admin && { label: "Pause everything", run: pause },
    admin && { label: "Resume everything", run: () => report(setPaused(false), "Everything is resumed.") },
    { label: "Change colours", hint: `now: ${choice.value}`, run: nextTheme },
    { label: "Show the keys", run: shortcuts },
    session.value?.required && { label: "Sign out", run: signOut },
  ];
  return all.filter((each) => !!each);
}

async function pause() {
  const sure = await ask(PAUSE_QUESTION, { label: "Pause everything" });
  if (sure) await report(setPaused(true), "Everything is paused.");
}

/** @param {Promise<unknown>} change @param {string} text */
async function report(change, text) {
  try {
    await change;
    showToast(text);
  } catch (error) {
    showToast(/** @type {Error} */ (error).message);
  }
}
