// What time it is, by the server's clock: a viewer's own may be wrong.

import { clockSkew } from "./api.js";
import { signal } from "./preact.js";

const SECOND = 1000;

/** Milliseconds since 1970, told anew every second while somebody looks. */
export const now = signal(Date.now());

setInterval(() => {
  if (!document.hidden) now.value = Date.now() + clockSkew;
}, SECOND);
