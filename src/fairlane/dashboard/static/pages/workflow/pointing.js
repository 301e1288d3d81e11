// @ts-check
// Which task the viewer points at, with the pointer or with the focus: a card beside it tells more.

import { useEffect, useMemo, useSignal } from "../../lib/preact.js";

/**
 * @import { Signal } from "../../lib/preact.js"
 * @typedef {{ box: string, element: Element, at: DOMRect }} Pointed
 * @typedef {object} Pointing
 * @property {Signal<Pointed | null>} pointed
 * @property {Record<string, (event: Event) => void>} over Handlers for what holds the boxes, which have the
 *   attribute data-box.
 * @property {Record<string, () => void>} card Handlers for the card.
 * @property {() => void} hide
 * @property {() => void} follow
 */

// Whoever crosses a box on the way to another does not mean it.
const DWELL_MS = 150;
// The way from a box to its card.
const LEAVE_MS = 300;

/** @returns {Pointing} */
export function usePointing() {
  /** @type {Signal<Pointed | null>} */
  const pointed = useSignal(null);
  const pointing = useMemo(() => pointingOf(pointed), []);
  useEffect(() => {
    const press = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") pointing.hide();
    };
    const options = { capture: true, passive: true };
    addEventListener("keydown", press);
    addEventListener("scroll", pointing.follow, options);
    return () => {
      pointing.hide();
      removeEventListener("keydown", press);
      removeEventListener("scroll", pointing.follow, options);
    };
  }, []);
  return pointing;
}

/** @param {Signal<Pointed | null>} pointed */
function pointingOf(pointed) {
  let timer = 0;
  const later = (/** @type {number} */ pause, /** @type {() => void} */ act) => {
    clearTimeout(timer);
    timer = setTimeout(act, pause);
  };
  /** @param {Element} element */
  function show(element) {
    const box = /** @type {HTMLElement} */ (element).dataset.box ?? "";
    if (pointed.value?.box !== box) pointed.value = { box, element, at: element.getBoundingClientRect() };
  }
  /** Keep the card beside what was scrolled, as the browser does to show what has the focus. */
  function follow() {
    if (pointed.value) {
      pointed.value = { ...pointed.value, at: pointed.value.element.getBoundingClientRect() };
    }
  }
  function hide() {
    clearTimeout(timer);
    pointed.value = null;
  }
  // A question that a button of the card asks belongs to the card.
  const leave = () => later(LEAVE_MS, () => !document.querySelector("dialog[open]") && hide());
  const stay = () => clearTimeout(timer);
  const boxAt = (/** @type {Event} */ { target }) =>
    target instanceof Element ? target.closest("[data-box]") : null;
  return {
    pointed,
    hide,
    follow,
    over: {
      onPointerOver: (/** @type {Event} */ event) => {
        // A finger that taps follows the link.
        if (event instanceof PointerEvent && event.pointerType === "touch") return;
        const box = boxAt(event);
        if (box) later(DWELL_MS, () => show(box));
        else leave();
      },
      onPointerLeave: leave,
      onFocusIn: (/** @type {Event} */ event) => {
        const box = boxAt(event);
        stay();
        if (box?.matches(":focus-visible")) show(box);
      },
      onFocusOut: leave,
    },
    card: { onPointerEnter: stay, onPointerLeave: leave, onFocusIn: stay, onFocusOut: leave },
  };
}
