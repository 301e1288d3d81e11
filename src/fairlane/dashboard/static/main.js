import { App } from "./app.js";
import { start } from "./lib/live.js";
import { here } from "./lib/router.js";
import { look } from "./lib/session.js";
import { html, render } from "./lib/view.js";
import { fetchAhead, pageOf } from "./pages/index.js";

fetchAhead(pageOf(here.value.parts)); // While the server tells who looks.
render(html`<${App} />`, document.getElementById("app"));
// A server that does not answer yet is asked again until it does.
async function enter() {
  try {
    await look();
    start();
  } catch {
    setTimeout(enter, 1000);
  }
}
enter();
