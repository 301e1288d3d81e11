import { App } from "./app.js";
import { start } from "./lib/live-events.js";
import { route } from "./lib/router.js";
import { loadSession } from "./lib/session.js";
import { html, render } from "./lib/preact.js";
import { preload, pageOf } from "./pages/index.js";

preload(pageOf(route.value.parts)); // While the server tells who looks.
render(html`<${App} />`, document.getElementById("app"));
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
