// The one door to the libraries: what pages and components are written with.

import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export { Component, render } from "../vendor/preact.js";
export {
  useCallback,
  useEffect,
  useErrorBoundary,
  useId,
  useMemo,
  useRef,
  useState,
} from "../vendor/hooks.js";
export { computed, effect, signal, untracked, useSignal } from "../vendor/signals.js";

/** Markup. Whatever is put into it becomes text: there is no way from here to markup out of data. */
export const html = htm.bind(h);
