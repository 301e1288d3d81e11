// @ts-check
// Requests to the public API. An answer is JSON; a refusal is an ApiError whose message can be shown.

import { signal } from "./preact.js";

/**
 * @import { Delete, ErrorBody, Get, Patch, Post } from "../../types/api.js"
 * @typedef {string | number | boolean | null | undefined} Value
 * @typedef {Record<string, Value | readonly Value[]>} Query
 * @typedef {{ query?: Query, body?: unknown, abort?: AbortSignal, version?: number }} RequestOptions
 *   `version`: the server refuses the change if there is another version by now.
 * @typedef {{ status?: number, code?: string, details?: Record<string, unknown> }} Refusal
 */

/** Counts the answers that asked for a sign-in. */
export const unauthorized = signal(0);

/** Milliseconds by which the server's clock is ahead of this one. */
export let clockSkew = 0;

export class ApiError extends Error {
  /** @param {string} message @param {Refusal} [about] */
  constructor(message, { status = 0, code = "unreachable", details = {} } = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

/**
 * Return the URL of a path of this server, wherever the server is mounted.
 *
 * @param {string} path
 * @param {Query} [query] Lists are repeated; empty values are left out.
 */
export function urlOf(path, query = {}) {
  const url = new URL(path, document.baseURI);
  appendQuery(url.searchParams, query);
  return url;
}

/** @param {URLSearchParams} params @param {Query} query */
export function appendQuery(params, query) {
  for (const [name, value] of Object.entries(query)) {
    for (const each of [value].flat()) {
      if (each !== undefined && each !== null && each !== "") params.append(name, String(each));
    }
  }
}

/**
 * Send a request of any kind. The functions below know its types.
 *
 * @param {string} method
 * @param {string} path
 * @param {RequestOptions} options
 * @returns {Promise<{ status: number, answer: unknown }>}
 */
export async function send(method, path, { query, body, abort, version }) {
  const headers = new Headers();
  if (body !== undefined) headers.set("content-type", "application/json");
  if (version !== undefined) headers.set("if-match", `"${version}"`);
  /** @type {RequestInit} */
  const init = { method, headers, signal: abort, body: JSON.stringify(body) };
  const response = await fetch(urlOf(path, query), init).catch((error) => {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server cannot be reached.");
  });
  noteClock(response);
  const answer = await parse(response);
  const { status } = response;
  if (response.ok) return { status, answer };
  if (status === 401) unauthorized.value += 1;
  const { error } = /** @type {Partial<ErrorBody>} */ (answer ?? {});
  throw new ApiError(error?.message ?? `The server answered ${status}.`, { status, ...error });
}

/** @param {string} method @param {string} path @param {RequestOptions} options */
const request = async (method, path, options) => (await send(method, path, options)).answer;

// The types of routes and answers come from the OpenAPI document. JSON that arrives is taken at its word.

/**
 * @template {keyof Get} R
 * @param {R} route
 * @param {Partial<Record<Get[R]["query"], Query[string]>>} [query]
 * @param {AbortSignal} [abort]
 * @returns {Promise<Get[R]["answer"]>}
 */
export const get = (route, query, abort) =>
  /** @type {Promise<Get[R]["answer"]>} */ (request("GET", route, { query, abort }));

/**
 * @template {keyof Post} R
 * @param {R} route
 * @param {Post[R]["body"]} [body]
 * @returns {Promise<Post[R]["answer"]>}
 */
export const post = (route, body = {}) =>
  /** @type {Promise<Post[R]["answer"]>} */ (request("POST", route, { body }));

/**
 * @template {keyof Patch} R
 * @param {R} route
 * @param {Patch[R]["body"]} body
 * @param {number} [version]
 * @returns {Promise<Patch[R]["answer"]>}
 */
export const patch = (route, body, version) =>
  /** @type {Promise<Patch[R]["answer"]>} */ (request("PATCH", route, { body, version }));

/**
 * @template {keyof Delete} R
 * @param {R} route
 * @param {Partial<Record<Delete[R]["query"], Query[string]>>} [query]
 * @param {number} [version]
 * @returns {Promise<Delete[R]["answer"]>}
 */
export const remove = (route, query, version) =>
  /** @type {Promise<Delete[R]["answer"]>} */ (request("DELETE", route, { query, version }));

/**
 * Return a name as a segment of a path. Its type is what the name is called in the types of routes: so
 * `api/v1/tasks/${segment(id)}` is known as the route `api/v1/tasks/{}`.
 *
 * @param {string} name
 */
export const segment = (name) => /** @type {"{}"} */ (encodeURIComponent(name));

/** @param {Response} response @returns {Promise<unknown>} */
async function parse(response) {
  const text = await response.text();
  if (!text) return null;
  try {
    return parseJson(text);
  } catch {
    return null; // A proxy's own page, for example: the status says enough.
  }
}

/** Throws a SyntaxError if the text is not JSON. @param {string} text @returns {unknown} */
export const parseJson = (text) => JSON.parse(text, LONG_NUMBER.test(text) ? keepLongNumber : undefined);

// Some tasks carry ids that are numbers too large for JavaScript, which would round them.
const LONG_NUMBER = /\d{16}/;

/** @param {string} _ @param {unknown} value @param {{ source: string }} context */
const keepLongNumber = (_, value, context) =>
  Number.isInteger(value) && !Number.isSafeInteger(value) && JSON.rawJSON
    ? JSON.rawJSON(context.source)
    : value;

/** @param {Response} response */
function noteClock(response) {
  const date = Date.parse(response.headers.get("date") ?? "");
  // Dates come in whole seconds, so a smaller difference means nothing.
  if (date) clockSkew = Math.abs(date - Date.now()) > 2000 ? date - Date.now() : 0;
}
