// What happens, as the server tells it: one WebSocket for the whole page.
//
// Nobody draws for each event. They are handed on in bundles, a few times a second, and whoever gets
// one fetches anew what it may have changed: so a thousand events a second cost as little as ten, and
// what is shown is never pieced together wrongly. For the same reason a connection that was lost needs
// no replay: all is fetched anew once it is back.

import { urlOf } from "./api.js";
import { loadSession, signedOut } from "./session.js";
import { effect, signal } from "./preact.js";

const BUNDLE_MS = 200;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;

/** "connecting" at first, then "live", or "away" while the server is. */
export const connection = signal("connecting");

const followers = new Set();
let socket = null;
let subscribed = "";
let pause = FIRST_PAUSE_MS;
let bundle = [];
let timer = 0;

/**
 * Call `heard` with the events of these types, an array at a time; with null when anything may have
 * happened, as after a connection was lost. Returns how to stop that.
 */
export function followEvents(types, heard) {
  const follower = { types: new Set(types), heard };
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
  subscribed = wanted();
  for (const type of JSON.parse(subscribed)) url.searchParams.append("type", type);
  socket = new WebSocket(url);
  socket.onopen = () => {
    const returned = connection.value === "away";
    connection.value = "live";
    pause = FIRST_PAUSE_MS;
    subscribe();
    if (returned) tell(null);
  };
  socket.onmessage = ({ data }) => receive(JSON.parse(data));
  socket.onclose = () => {
    socket = null;
    if (signedOut.value) return;
    connection.value = "away";
    loadSession().catch(() => {}); // Perhaps it is there, but a token has ended: then one has to sign in.
    setTimeout(
      () => {
        if (!socket && !signedOut.value) connect();
      },
      pause * (0.5 + Math.random()),
    );
    pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
  };
}

function receive(event) {
  if (event.type === "reset") {
    tell(null);
    return;
  }
  bundle.push(event);
  if (!timer) {
    timer = setTimeout(() => {
      timer = 0;
      const events = bundle;
      bundle = [];
      tell(events);
    }, BUNDLE_MS);
  }
}

function tell(events) {
  for (const { types, heard } of [...followers]) {
    if (events === null) {
      heard(null);
      continue;
    }
    const mine = events.filter(({ type }) => types.has(type));
    if (mine.length) heard(mine);
  }
}

// Sorted, so that the same wish is the same text. Never empty, which would mean everything.
function wanted() {
  const types = new Set(["system.metrics"]);
  for (const follower of followers) for (const type of follower.types) types.add(type);
  return JSON.stringify([...types].sort());
}

function subscribe() {
  const types = wanted();
  if (socket?.readyState !== WebSocket.OPEN || types === subscribed) return;
  subscribed = types;
  socket.send(`{"subscribe": ${types}}`);
}

/** Begin; it goes on by itself, whenever somebody is signed in. */
export function start() {
  effect(() => {
    if (signedOut.value) socket?.close();
    else if (!socket) connect();
  });
}
