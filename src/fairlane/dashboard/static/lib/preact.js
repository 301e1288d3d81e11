// @ts-check
// The only module that imports Preact, htm and signals. Pages and components import them from here.

import htm from "../vendor/htm.js";
import { h } from "../vendor/preact.js";

/** @typedef {import("../vendor/preact.js").Children} Children */
/** @template T @typedef {import("../vendor/hooks.js").Ref<T>} Ref */
/** @template T @typedef {import("../vendor/signals.js").Signal<T>} Signal */

export { Component, render } from "../vendor/preact.js";
export {
  useCallback,
  useEffect,
  useErrorBoundary,
  useId,
  useLayoutEffect,
  useMemo,
  useRef,
  useState,
} from "../vendor/hooks.js";
export { computed, effect, signal, untracked, useSignal } from "../vendor/signals.js";

/** Make markup. Values become text: data cannot turn into markup. */
export const html = htm.bind(h);
