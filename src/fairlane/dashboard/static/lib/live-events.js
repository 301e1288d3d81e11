// @ts-check
// Events from the server: one WebSocket for the whole page.
//
// Nothing is drawn from an event. Events arrive in bundles, a few times a second, and a page that follows
// them fetches again what they may have changed. So a thousand events a second cost as little as ten, and
// what is shown is never pieced together wrongly. For the same reason a connection that was lost needs no
// replay: everything is fetched again once it is back.
// A bound token gets no events, which are about everybody's tasks: pages are fetched again now and then.

import { urlOf } from "./api.js";
import { effect, signal } from "./preact.js";
import { boundTo, loadSession, signedOut } from "./session.js";

/**
 * @import { EventType, LiveEvent } from "../../types/api.js"
 * @import { Signal } from "./preact.js"
 * @typedef {(events: TaskEvent[] | null) => void} Listener
 */

/**
 * An event; those about a task carry these fields.
 *
 * @typedef {LiveEvent & { data: { task_id?: string, type?: string, queue?: string } }} TaskEvent
 */

const BUNDLE_MS = 200;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
const POLL_MS = 5000;

/** @type {Signal<"connecting" | "live" | "away" | "polling">} */
export const connection = signal("connecting");

/** @type {Set<{ types: Set<string>, listener: Listener }>} */
const followers = new Set();
/** @type {WebSocket | null} */
let socket = null;
let subscribed = "";
let pause = FIRST_PAUSE_MS;
/** @type {TaskEvent[]} */
let bundle = [];
let timer = 0;

/**
 * Call `listener` with arrays of events of these types; with null when events may have been missed, as
 * after a connection was lost. Return a function that stops it.
 *
 * @param {EventType[]} types
 * @param {Listener} listener
 */
export function followEvents(types, listener) {
  const follower = { types: new Set(types), listener };
  followers.add(follower);
  subscribe();
  return () => {
    followers.delete(follower);
    subscribe();
  };
}

function connect() {
  const url = urlOf("ws");
  url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
  subscribed = wantedTypes();
  for (const type of JSON.parse(subscribed)) url.searchParams.append("type", type);
  socket = new WebSocket(url);
  socket.onopen = () => {
    const returned = connection.value === "away";
    connection.value = "live";
    pause = FIRST_PAUSE_MS;
    subscribe();
    if (returned) notify(null);
  };
  socket.onmessage = ({ data }) => receive(JSON.parse(data));
  socket.onclose = () => {
    socket = null;
    if (signedOut.value || boundTo.value !== null) return;
    connection.value = "away";
    loadSession().catch(() => {}); // The server may be there, and only the token expired.
    setTimeout(
      () => {
        if (!socket && !signedOut.value) connect();
      },
      pause * (0.5 + Math.random()),
    );
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  };
}

/** @param {TaskEvent} event */
function receive(event) {
  if (event.type === "reset") {
    notify(null);
    return;
  }
  bundle.push(event);
  if (!timer) {
    timer = setTimeout(() => {
      timer = 0;
      const events = bundle;
      bundle = [];
      notify(events);
    }, BUNDLE_MS);
  }
}

/** @param {TaskEvent[] | null} events */
function notify(events) {
  for (const { types, listener } of [...followers]) {
    if (events === null) {
      listener(null);
      continue;
    }
    const wanted = events.filter(({ type }) => types.has(type));
    if (wanted.length) listener(wanted);
  }
}

// Sorted, so that the same types are the same text. Never empty, which would mean everything.
function wantedTypes() {
  const types = new Set(["system.metrics"]);
  for (const follower of followers) for (const type of follower.types) types.add(type);
  return JSON.stringify([...types].sort());
}

function subscribe() {
  const types = wantedTypes();
  if (socket?.readyState !== WebSocket.OPEN || types === subscribed) return;
  subscribed = types;
  socket.send(`{"subscribe": ${types}}`);
}

/** Connect, and stay connected while somebody is signed in. */
export function start() {
  effect(() => {
    const polls = boundTo.value !== null && !signedOut.value;
    if (signedOut.value || polls) socket?.close();
    else if (!socket) connect();
    if (!polls) return undefined;
    connection.value = "polling";
    const timer = setInterval(() => notify(null), POLL_MS);
    return () => clearInterval(timer);
  });
}
