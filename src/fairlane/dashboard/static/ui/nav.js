import { get } from "../lib/api.js";
import { compact } from "../lib/format.js";
import { connection } from "../lib/live-events.js";
import { useResource } from "../lib/resource.js";
import { route, link } from "../lib/router.js";
import { session, signOut } from "../lib/session.js";
import { choice, nextTheme } from "../lib/theme.js";
import { html } from "../lib/preact.js";
import { PAGES, preload } from "../pages/index.js";
import { Icon } from "./icons.js";
import { PaletteButton } from "./palette.js";

const STATUS = { live: "Live", connecting: "Connecting", away: "Server away" };

/** Where one can go, and how the connection is. */
export function Nav() {
  const { data } = useResource(() => get("api/v1/queue/stats"), [], {
    on: ["system.metrics"],
    every: 10_000,
  });
  const counts = { tasks: data?.by_status.executing, dead: data?.dlq_size, workers: data?.workers.active };
  const current = route.value.parts[0] ?? "";
  return html`<nav class="nav" aria-label="Pages">
    <a class="brand" href=${link("")}><${Icon} name="brand" />Fairlane</a>
    <${PaletteButton} />
    <ul>${PAGES.map(
      ({ name, title, icon, load }) => html`<li key=${name}>
        <a href=${link(name)} onPointerEnter=${() => preload({ load })} aria-current=${
          current === name ? "page" : undefined
        }>
          <${Icon} name=${icon} /><span>${title}</span>
          ${
            counts[name] > 0 &&
            html`<span class="nav-count" data-page=${name}>${compact(counts[name])}</span>`
          }
        </a>
      </li>`,
    )}</ul>
    <div class="nav-footer">
      <span class="connection" data-status=${connection.value} role="status">${STATUS[connection.value]}
      </span>
      <button type="button" class="nav-button" onClick=${nextTheme}
        title="Colours: as your system has them, light, or dark">
        <${Icon} name=${choice.value} /><span>Theme: ${choice.value}</span>
      </button>
      ${
        session.value.required &&
        html`<button type="button" class="nav-button" onClick=${signOut}
          title=${`Signed in as ${session.value.name}`}>
          <${Icon} name="leave" /><span>Sign out</span>
        </button>`
      }
    </div>
  </nav>`;
}
