// @ts-check
// The current view: the part of the address behind the #. It holds every filter, so that a link to a view
// is a link to what it shows.

import { appendQuery } from "./api.js";
import { computed, signal } from "./preact.js";

/** @import { Query } from "./api.js" */

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** "#/tasks?status=failed" → {path: "/tasks", parts: ["tasks"], query: URLSearchParams}. */
export const route = computed(() => {
  const [path, query = ""] = hash.value.replace(/^#/, "").split("?", 2);
  return {
    path: path || "/",
    parts: path.split("/").filter(Boolean).map(decode),
    query: new URLSearchParams(query),
  };
});

/**
 * Return the address of a view. Lists in the query are repeated; empty values are left out.
 *
 * @param {string | string[]} parts
 * @param {Query} [query]
 */
export function link(parts, query = {}) {
  const params = new URLSearchParams();
  appendQuery(params, query);
  const path = [parts].flat().map(encodeURIComponent).join("/");
  const tail = params.toString();
  return `#/${path}${tail && `?${tail}`}`;
}

/** @param {string} address @param {{ replace?: boolean }} [options] */
export function navigate(address, { replace = false } = {}) {
  if (!replace) {
    location.hash = address;
    return;
  }
  history.replaceState(null, "", address);
  hash.value = location.hash;
}

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Typed by hand, with a stray %.
  }
}
