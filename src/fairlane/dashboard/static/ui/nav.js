// @ts-check
// The navigation, the state of the connection, theme and sign-out.

import { get } from "../lib/api.js";
import { compact } from "../lib/format.js";
import { connection } from "../lib/live-events.js";
import { html } from "../lib/preact.js";
import { useResource } from "../lib/resource.js";
import { link, route } from "../lib/router.js";
import { boundTo, session, signOut } from "../lib/session.js";
import { choice, nextTheme } from "../lib/theme.js";
import { preload, visiblePages } from "../pages/index.js";
import { Icon } from "./icons.js";
import { PaletteButton } from "./palette.js";

/** @import { NamedPage } from "../pages/index.js" */

const STATUS = { live: "Live", connecting: "Connecting", away: "Server away", polling: "Every 5 s" };

export function Nav() {
  const load = async (/** @type {AbortSignal} */ abort) =>
    boundTo.value === null ? get("api/v1/queue/stats", {}, abort) : null;
  const { data } = useResource(load, [boundTo.value], {
    on: ["system.metrics"],
    every: 10_000,
  });
  /** @type {Record<string, number | undefined>} */
  const counts = { tasks: data?.by_status.executing, dead: data?.dlq_size, workers: data?.workers.active };
  return html`<nav class="nav" aria-label="Pages">
    <a class="brand" href=${link("")}><${Icon} name="brand" />Fairlane</a>
    <${PaletteButton} />
    <ul>${visiblePages().map(
      (page) => page.icon && html`<${PageLink} key=${page.name} page=${page} count=${counts[page.name]} />`,
    )}</ul>
    <div class="nav-footer">
      <span class="connection" data-status=${connection.value} role="status">
        ${STATUS[connection.value]}
      </span>
      <button type="button" class="nav-button" onClick=${nextTheme}
        title="Colours: those of your system, light, or dark">
        <${Icon} name=${choice.value} /><span>Theme: ${choice.value}</span>
      </button>
      ${
        session.value?.required &&
        html`<button type="button" class="nav-button" onClick=${signOut}
          title=${signedInAs()}>
          <${Icon} name="leave" /><span>Sign out</span>
        </button>`
      }
    </div>
  </nav>`;
}

const signedInAs = () =>
  `Signed in as ${session.value?.name}` + (boundTo.value === null ? "" : `, bound to ${boundTo.value}`);

/** @param {{ page: NamedPage, count?: number }} props */
function PageLink({ page, count = 0 }) {
  const { name, title, icon } = page;
  const current = name === (route.value.parts[0] ?? "");
  return html`<li>
    <a href=${link(name)} onPointerEnter=${() => preload(page)} aria-current=${current ? "page" : undefined}>
      <${Icon} name=${icon} /><span>${title}</span>
      ${count > 0 && html`<span class="nav-count" data-page=${name}>${compact(count)}</span>`}
    </a>
  </li>`;
}
