import { may, session, signOut } from "../../lib/session.js";
import { choice, nextTheme } from "../../lib/theme.js";
import { ask } from "../dialog.js";
import { PAUSE_QUESTION, setPaused } from "../global-controls.js";
import { showToast } from "../toasts.js";

/** What can be done from anywhere: [{label, hint, run}]. */
export function commands(shortcuts) {
  return [
    may("admin") && { label: "Pause everything", run: pause },
    may("admin") && { label: "Resume everything", run: () => told(setPaused(false), "Everything goes on.") },
    { label: "Change colours", hint: `now: ${choice.value}`, run: nextTheme },
    { label: "Show the keys", run: shortcuts },
    session.value.required && { label: "Sign out", run: signOut },
  ].filter(Boolean);
}

async function pause() {
  if (await ask(PAUSE_QUESTION, { label: "Pause everything" }))
    await told(setPaused(true), "Everything is paused.");
}

async function told(done, text) {
  try {
    await done;
    showToast(text);
  } catch (error) {
    showToast(error.message);
  }
}
