// @ts-check
// The frame around all pages, and the page that is shown.

import { connection } from "./lib/live-events.js";
import { html, useEffect, useErrorBoundary, useSignal } from "./lib/preact.js";
import { route } from "./lib/router.js";
import { session, signedOut } from "./lib/session.js";
import { isVisible, pageOf } from "./pages/index.js";
import { SignIn } from "./pages/sign-in.js";
import { QuestionDialog } from "./ui/dialog.js";
import { ErrorBanner, Loading } from "./ui/fetched.js";
import { Nav } from "./ui/nav.js";
import { Palette } from "./ui/palette.js";
import { Toasts } from "./ui/toasts.js";

/**
 * @import { Signal } from "./lib/preact.js"
 * @import { LoadPage, PageComponent } from "./pages/index.js"
 * @typedef {{ load?: LoadPage, page?: PageComponent, error?: { message: string } }} Loaded
 */

export function App() {
  if (session.value === null) {
    return html`<div class="splash muted" role="status">Looking for the server …</div>`;
  }
  if (signedOut.value) return html`<${SignIn} />`;
  return html`
    <a class="skip-link" href="#main" onClick=${skip}>Skip to the content</a>
    <div class="app-frame">
      <${Nav} />
      <div class="content">
        <${OfflineBanner} />
        <main id="main" tabindex="-1"><${Page} /></main>
      </div>
    </div>
    <${Palette} /><${QuestionDialog} /><${Toasts} />`;
}

const REFUSED = {
  title: "Not for this token",
  load: async () => (await import("./pages/not-found.js")).Refused,
};
const NOWHERE = {
  title: "Not found",
  load: async () => (await import("./pages/not-found.js")).NotFound,
};

function Page() {
  const { path, parts, query } = route.value;
  const found = pageOf(parts);
  const { load, title } = found && !isVisible(parts) ? REFUSED : (found ?? NOWHERE);
  const { page, error } = usePage(load);
  const [broken, reset] = useErrorBoundary((failure) => console.error(failure));
  useEffect(() => {
    document.title = `${title} · Fairlane`;
    if (broken) reset();
  }, [path]);
  if (broken) {
    const message = `This page broke: ${broken.message}`;
    return html`<${ErrorBanner} error=${{ message }} refresh=${reset} />`;
  }
  if (error) return html`<${ErrorBanner} error=${error} refresh=${() => location.reload()} />`;
  if (!page) return html`<${Loading} />`;
  return html`<${page} key=${page.name} parts=${parts} query=${query} />`;
}

// After an update the server has other files, and only the whole page can be loaded again.
const NOT_LOADED = { message: "This page could not be loaded: the server is away, or has been updated." };

/** @param {LoadPage} load @returns {Loaded} */
function usePage(load) {
  /** @type {Signal<Loaded>} */
  const loaded = useSignal({});
  useEffect(() => {
    let left = false; // A page that arrives after the viewer has left must not replace what they see.
    const show = (/** @type {Loaded} */ outcome) => {
      if (!left) loaded.value = { load, ...outcome };
    };
    load().then(
      (page) => show({ page }),
      () => show({ error: NOT_LOADED }),
    );
    return () => {
      left = true;
    };
  }, [load]);
  return loaded.value.load === load ? loaded.value : {};
}

const OfflineBanner = () =>
  connection.value === "away" &&
  html`<div class="banner away" role="status">
    The server is not reachable: what you see may be old. Trying again …
  </div>`;

/** @param {Event} event */
function skip(event) {
  event.preventDefault(); // The part behind the # is the view.
  document.getElementById("main")?.focus();
}
