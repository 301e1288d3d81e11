// @ts-check
// What a page shows of the server: fetched, and fetched again after an event.

import { followEvents } from "./live-events.js";
import { useEffect, useMemo, useSignal } from "./preact.js";
import { signedOut } from "./session.js";

/**
 * @import { EventType } from "../../types/api.js"
 * @import { TaskEvent } from "./live-events.js"
 * @import { Signal } from "./preact.js"
 * @typedef {{ message: string, status?: number, code?: string }} Failure
 */

/**
 * @template T
 * @typedef {{ data: T | undefined, error: Failure | null, loading: boolean }} State
 */

/**
 * @template T
 * @typedef {State<T> & { refresh: () => Promise<void> }} Resource
 */

/**
 * @template T
 * @typedef {(abort: AbortSignal) => Promise<T>} Load
 */

/**
 * @template T
 * @typedef {object} Refetch
 * @property {EventType[]} [on] Types of events after which to fetch again.
 * @property {(event: TaskEvent) => boolean} [concerns] Whether one of these events matters.
 * @property {number} [every] Milliseconds after which to fetch again even without an event.
 * @property {(data: T) => boolean} [until] Whether only events change the data from then on.
 * @property {boolean} [keep] Keep the data of the last inputs until there is data for the new ones.
 */

const AT_MOST_EVERY_MS = 1000;
// What takes a store long is asked for less often: the pause is this many times as long as the request took.
const REST = 3;

/**
 * Return what `load` promises, for as long as `inputs` stay the same. The data stays while it is fetched
 * again, and when that fails: a page does not go blank because of a hiccup. Nothing is fetched while the
 * page is hidden.
 *
 * @template T
 * @param {Load<T>} load
 * @param {readonly unknown[]} inputs
 * @param {Refetch<T>} [when]
 * @returns {Resource<T>}
 */
export function useResource(load, inputs, when = {}) {
  const { on = [], concerns = () => true, every = 0, until = () => false, keep = false } = when;
  /** @type {Signal<State<T>>} */
  const state = useSignal({ data: undefined, error: null, loading: true });
  const fetcher = useMemo(() => new Fetcher(load, state), inputs);
  useEffect(() => {
    fetcher.start(keep);
    const stop = followEvents(on, (events) => {
      if (events === null || events.some(concerns)) fetcher.invalidate();
    });
    const again = () => {
      const { data } = state.peek();
      if (data === undefined || !until(data)) fetcher.invalidate();
    };
    const timer = every ? setInterval(again, every) : 0;
    const resume = () => {
      if (!document.hidden) fetcher.resume();
    };
    document.addEventListener("visibilitychange", resume);
    return () => {
      stop();
      clearInterval(timer);
      document.removeEventListener("visibilitychange", resume);
      fetcher.stop();
    };
  }, [fetcher]);
  return { ...state.value, refresh: () => fetcher.fetch() };
}

/** @template T */
class Fetcher {
  #load;
  #state;
  /** @type {AbortController | null} */
  #abort = null;
  #next = -Infinity;
  #timer = 0;
  #stale = false;
  #stopped = false;

  /** @param {Load<T>} load @param {Signal<State<T>>} state */
  constructor(load, state) {
    this.#load = load;
    this.#state = state;
  }

  /** @param {boolean} keep */
  start(keep) {
    this.#state.value = { data: keep ? this.#state.peek().data : undefined, error: null, loading: true };
    this.fetch();
  }

  /** Fetch again, but not too often, not twice at once, and not for a hidden page. */
  invalidate() {
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

  /** Fetch now, and abort a request that is under way. */
  async fetch() {
    if (this.#stopped || signedOut.value) return;
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#stale = false;
    this.#abort?.abort();
    const abort = (this.#abort = new AbortController());
    const started = performance.now();
    const outcome = await this.#outcome(abort.signal);
    if (abort !== this.#abort || this.#stopped) return;
    this.#abort = null;
    const ended = performance.now();
    this.#next = ended + Math.max(AT_MOST_EVERY_MS, REST * (ended - started));
    this.#state.value = { loading: false, ...outcome };
    this.resume();
  }

  /** @param {AbortSignal} abort */
  async #outcome(abort) {
    try {
      return { data: await this.#load(abort), error: null };
    } catch (failure) {
      const error = /** @type {Failure} */ (failure);
      // A store that is away comes back, and no event says so.
      if (error.status === 503 || error.code === "unreachable") this.#stale = true;
      return { data: this.#state.value.data, error };
    }
  }
}
