// @ts-check
// Dialogs, and questions before an action that cannot be undone.

import { html, signal, useEffect, useRef } from "../lib/preact.js";

/**
 * @import { Children, Signal } from "../lib/preact.js"
 * @typedef {{ danger: boolean, label: Children }} Style
 * @typedef {Style & { text: Children, answer: (yes: boolean) => void }} Question
 */

/**
 * A modal dialog, open for as long as it is drawn.
 *
 * @param {object} props
 * @param {string} [props.label]
 * @param {string} [props.labelledBy] The id of its heading, in place of a label.
 * @param {string} [props.kind] A class for its style.
 * @param {() => void} props.close Is called when the viewer dismisses it.
 * @param {Children} props.children
 */
export function Dialog({ label, labelledBy, kind = "", close, children }) {
  const dialog = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown?.showModal();
    return () => {
      shown?.close();
      if (before instanceof HTMLElement) before.focus();
    };
  }, []);
  // A press outside of its content hits the dialog itself.
  const press = (/** @type {MouseEvent} */ { target }) => {
    if (target === dialog.current) close();
  };
  return html`<dialog ref=${dialog} class="dialog ${kind}" aria-label=${label}
    aria-labelledby=${labelledBy} onCancel=${close} onMouseDown=${press}>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

/** @type {Signal<Question | null>} */
const question = signal(null);

/**
 * Ask a question, and promise whether the answer was yes.
 *
 * @param {Children} text
 * @param {Partial<Style>} style
 * @returns {Promise<boolean>}
 */
export function ask(text, { danger = false, label = "Go on" } = {}) {
  return new Promise((answer) => {
    question.value = { text, danger, label, answer };
  });
}

/** The question that is asked now. It belongs on the page once. */
export function QuestionDialog() {
  const asked = question.value;
  if (!asked) return null;

  const close = (/** @type {boolean} */ yes) => {
    question.value = null;
    asked.answer(yes);
  };

  return html`<${Dialog} labelledBy="question" close=${() => close(false)}>
    <p id="question">${asked.text}</p>
    <div class="row align-end">
      <button type="button" class="button" onClick=${() => close(false)}>Back</button>
      <button type="button" class="button ${asked.danger ? "danger" : "primary"}"
        onClick=${() => close(true)}>${asked.label}</button>
    </div>
  </${Dialog}>`;
}
