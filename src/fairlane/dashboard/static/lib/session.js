// @ts-check
// Who is signed in, and what they may do.

import { get, post, remove, unauthorized } from "./api.js";
import { computed, effect, signal, untracked } from "./preact.js";

/**
 * @import { Scope, Session } from "../../types/api.js"
 * @import { Signal } from "./preact.js"
 */

/** @type {Signal<Session | null>} Null until the server has answered. */
export const session = signal(null);

/** Whether a token is required, and none was given or it is no longer valid. */
export const signedOut = computed(
  () => session.value !== null && session.value.required && session.value.name === null,
);

/** What the viewer's token is bound to, in words; null if it is not bound. */
export const boundTo = computed(() => session.value?.bound_to ?? null);

/**
 * Whether the viewer has a scope. Administrators may do everything; with a bound token, whoever may submit
 * tasks may also change those that it sees.
 *
 * @param {Scope} scope
 */
export const hasScope = (scope) => {
  const scopes = session.value?.scopes ?? [];
  const needed = scope === "admin" && boundTo.value !== null ? "submit" : scope;
  return scopes.includes(needed) || scopes.includes("admin");
};

export const loadSession = async () => {
  session.value = await get("auth/session");
};

/** @param {string} token */
export const signIn = async (token) => {
  session.value = await post("auth/session", { token });
};

export async function signOut() {
  await remove("auth/session");
  await loadSession();
}

// A token that expired or was revoked is noticed with the next request: ask the server who is signed in.
effect(() => {
  if (unauthorized.value && untracked(() => !signedOut.value)) loadSession();
});
