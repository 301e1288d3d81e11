// Requests to the public API. An answer is JSON; a refusal is an ApiError that can be shown as it is.

import { signal } from "./preact.js";

/** Counts the answers that said: sign in first. */
export const unauthorized = signal(0);

/** Milliseconds that the server's clock is ahead of this one's. */
export let clockSkew = 0;

export class ApiError extends Error {
  constructor(message, { status = 0, code = "unreachable", details = {} } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/** The address of a path of this server, wherever that is mounted. */
export function urlOf(path, query = {}) {
  const url = new URL(path, document.baseURI);
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null && each !== "") url.searchParams.append(name, each);
    }
  }
  return url;
}

async function ask(method, path, { query, body, signal: abort } = {}) {
  const request = { method, signal: abort };
  if (body !== undefined) {
    request.headers = { "content-type": "application/json" };
    request.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(urlOf(path, query), request);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached.");
  }
  noteClock(response);
  const answer = await parsed(response);
  if (response.ok) return answer;
  if (response.status === 401) unauthorized.value += 1;
  const { code, message, details } = answer?.error ?? {};
  throw new ApiError(message ?? `The server answered ${response.status}.`, {
    status: response.status,
    code,
    details,
  });
}

export const get = (path, query, abort) => ask("GET", path, { query, signal: abort });
export const post = (path, body = {}) => ask("POST", path, { body });
export const patch = (path, body) => ask("PATCH", path, { body });
export const remove = (path, query) => ask("DELETE", path, { query });

/** A name as a part of a path. */
export const segment = encodeURIComponent;

async function parsed(response) {
  const text = await response.text();
  if (!text) return null;
  try {
    return JSON.parse(text, LONG_NUMBER.test(text) ? exactly : undefined);
  } catch {
    return null; // A proxy's own page, say: the status tells enough.
  }
}

// Some ids that people put into tasks are numbers too large for JavaScript, which would round them.
const LONG_NUMBER = /\d{16}/;
const exactly = (_, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && JSON.rawJSON
    ? JSON.rawJSON(context.source)
    : value;

function noteClock(response) {
  const date = Date.parse(response.headers.get("date") ?? "");
  // Dates come in whole seconds: what differs by less says nothing.
  if (date) clockSkew = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
}
