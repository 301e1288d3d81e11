// @ts-check
import { App } from "./app.js";
import { start } from "./lib/live-events.js";
import { html, render } from "./lib/preact.js";
import { route } from "./lib/router.js";
import { loadSession } from "./lib/session.js";
import { pageOf, preload } from "./pages/index.js";

preload(pageOf(route.value.parts)); // While the server answers who is signed in.
render(html`<${App} />`, /** @type {HTMLElement} */ (document.getElementById("app")));

// A server that does not answer yet is asked again until it does.
async function enter() {
  try {
    await loadSession();
    start();
  } catch {
    setTimeout(enter, 1000);
  }
}
enter();
