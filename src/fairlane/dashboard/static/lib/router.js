// Where in the dashboard one is: the part of the address behind the #. It holds every filter, so that a
// link to a view is a link to what it shows.

import { computed, signal } from "./preact.js";

const hash = signal(location.hash);
addEventListener("hashchange", () => {
  hash.value = location.hash;
});

/** {path, parts, query}: "#/tasks?status=failed" → "/tasks", ["tasks"], URLSearchParams. */
export const route = computed(() => {
  const [path, query = ""] = hash.value.replace(/^#/, "").split("?", 2);
  return {
    path: path || "/",
    parts: path.split("/").filter(Boolean).map(decoded),
    query: new URLSearchParams(query),
  };
});

/** The address of a view. A list in the query is repeated; what is empty is left out. */
export function link(parts, query = {}) {
  const params = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null && each !== "") params.append(name, each);
    }
  }
  const path = [parts].flat().map(encodeURIComponent).join("/");
  const tail = params.toString();
  return `#/${path}${tail && `?${tail}`}`;
}

export function navigate(address, { replace = false } = {}) {
  if (!replace) {
    location.hash = address;
    return;
  }
  history.replaceState(null, "", address);
  hash.value = location.hash;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // Typed by hand, with a stray %.
  }
}
