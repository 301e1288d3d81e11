// Who looks at the page, and what they may do.

import { get, post, remove, unauthorized } from "./api.js";
import { computed, effect, signal, untracked } from "./preact.js";

/** {required, name, scopes}; null until the server has told. */
export const session = signal(null);

/** Whether there is no way in without a token, and none was given, or it is no longer good. */
export const signedOut = computed(
  () => session.value !== null && session.value.required && session.value.name === null,
);

/** Whether the viewer may do what takes a scope. Who may administrate may do everything. */
export const may = (scope) => {
  const scopes = session.value?.scopes ?? [];
  return scopes.includes(scope) || scopes.includes("admin");
};

export const loadSession = async () => {
  session.value = await get("auth/session");
};

export const signIn = async (token) => {
  session.value = await post("auth/session", { token });
};

export async function signOut() {
  await remove("auth/session");
  await loadSession();
}

// A token that expires, or is revoked, shows with the next request: the server then says who is left.
effect(() => {
  if (unauthorized.value && untracked(() => !signedOut.value)) loadSession();
});
