// What a page shows of the server: fetched, and fetched anew when something happened to it.

import { signedOut } from "./session.js";
import { followEvents } from "./live-events.js";
import { useEffect, useMemo, useSignal } from "./preact.js";

const AT_MOST_EVERY_MS = 1000;
// What takes a store long is asked for less often: after so many times as long as it took.
const REST = 3;

/**
 * What `load(abort)` promises, for as long as `inputs` stay the same.
 *
 * on: types of events after which to fetch anew; `concerns(event)` can say that one is of no interest.
 * every: milliseconds after which to fetch anew even if nothing was heard.
 * keep: what was fetched for other inputs stays until what these ask for is there.
 *
 * Returns {data, error, loading, refresh}. What was fetched stays while it is fetched anew, and when
 * that fails: a page does not go blank because of a hiccup. Nothing is fetched while nobody looks.
 */
export function useResource(load, inputs, { on = [], concerns = () => true, every = 0, keep = false } = {}) {
  const state = useSignal({ data: undefined, error: null, loading: true });
  const fetcher = useMemo(() => new Fetcher(load, state), inputs);
  useEffect(() => {
    fetcher.start(keep);
    const stop = followEvents(on, (events) => {
      if (events === null || events.some(concerns)) fetcher.wake();
    });
    const timer = every && setInterval(() => fetcher.wake(), every);
    const look = () => {
      if (!document.hidden) fetcher.resume();
    };
    document.addEventListener("visibilitychange", look);
    return () => {
      stop();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", look);
      fetcher.stop();
    };
  }, [fetcher]);
  return { ...state.value, refresh: () => fetcher.fetch() };
}

class Fetcher {
  #load;
  #state;
  #abort = null;
  #next = -Infinity;
  #timer = 0;
  #stale = false;
  #stopped = false;

  constructor(load, state) {
    this.#load = load;
    this.#state = state;
  }

  start(keep) {
    this.#state.value = { data: keep ? this.#state.peek().data : undefined, error: null, loading: true };
    this.fetch();
  }

  /** Something may have changed: fetch, but not too often, not twice at once, and not for nobody. */
  wake() {
    this.#stale = true;
    this.resume();
  }

  resume() {
    if (!this.#stale || this.#timer || this.#abort || document.hidden) return;
    const pause = Math.max(0, this.#next - performance.now());
    this.#timer = setTimeout(() => this.fetch(), pause);
  }

  stop() {
    this.#stopped = true;
    clearTimeout(this.#timer);
    this.#abort?.abort();
  }

  /** Now, whatever else is under way. */
  async fetch() {
    if (this.#stopped || signedOut.value) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#stale = false;
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    const begun = performance.now();
    const found = await this.#outcome(abort.signal);
    if (abort !== this.#abort || this.#stopped) return;
    this.#abort = null;
    const ended = performance.now();
    this.#next = ended + Math.max(AT_MOST_EVERY_MS, REST * (ended - begun));
    this.#state.value = { loading: false, ...found };
    this.resume();
  }

  async #outcome(abort) {
    try {
      return { data: await this.#load(abort), error: null };
    } catch (error) {
      // A store that is away comes back, and no event tells of that.
      if (error.status === 503 || error.code === "unreachable") this.#stale = true;
      return { data: this.#state.value.data, error };
    }
  }
}
