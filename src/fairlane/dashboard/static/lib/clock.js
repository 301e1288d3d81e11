// @ts-check
// The time by the server's clock: a viewer's own clock may be wrong.

import { clockSkew } from "./api.js";
import { signal } from "./preact.js";

const SECOND = 1000;

/** Milliseconds since 1970, updated every second while the page is visible. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now() + clockSkew;
}, SECOND);
