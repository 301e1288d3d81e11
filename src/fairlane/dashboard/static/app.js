// The frame around all pages, and which page is shown.

import { Nav } from "./ui/nav.js";
import { Palette } from "./ui/palette.js";
import { QuestionDialog } from "./ui/dialog.js";
import { Toasts } from "./ui/toasts.js";
import { ErrorBanner, Loading } from "./ui/fetched.js";
import { route } from "./lib/router.js";
import { connection } from "./lib/live-events.js";
import { session, signedOut } from "./lib/session.js";
import { html, useEffect, useErrorBoundary, useSignal } from "./lib/preact.js";
import { NotFound } from "./pages/not-found.js";
import { SignIn } from "./pages/sign-in.js";
import { pageOf } from "./pages/index.js";

export function App() {
  if (session.value === null)
    return html`<div class="splash muted" role="status">Looking for the server …</div>`;
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

const NOWHERE = { title: "Not found", load: async () => NotFound };

function Page() {
  const { parts } = route.value;
  const { load, title } = pageOf(parts) ?? NOWHERE;
  const { page, error } = useLoaded(load);
  const [broken, mend] = useErrorBoundary((error) => console.error(error));
  useEffect(() => {
    document.title = `${title} · Fairlane`;
    if (broken) mend();
  }, [route.value.path]);
  if (broken)
    return html`<${ErrorBanner} error=${{ message: `This page broke: ${broken.message}` }}
      refresh=${mend} />`;
  if (error) return html`<${ErrorBanner} error=${error} refresh=${() => location.reload()} />`;
  if (!page) return html`<${Loading} />`;
  return html`<${page} key=${page.name} parts=${parts} query=${route.value.query} />`;
}

// Of another server, after an update, a page has other files: only the whole can be had anew.
const LOST = { message: "This page could not be loaded: the server is away, or has been updated." };

function useLoaded(load) {
  const loaded = useSignal({});
  useEffect(() => {
    let left = false; // Who has gone on meanwhile is not shown what comes late, nor loses what he sees.
    const show = (outcome) => {
      if (!left) loaded.value = { load, ...outcome };
    };
    load().then(
      (page) => show({ page }),
      () => show({ error: LOST }),
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

function skip(event) {
  event.preventDefault(); // What is behind the # is the page.
  document.getElementById("main").focus();
}
