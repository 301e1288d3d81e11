// Dialogs; and questions before something is done that cannot be undone.

import { html, signal, useEffect, useRef } from "../lib/preact.js";

/**
 * A dialog, for as long as it is there; `close` is called when somebody wants it gone. `titled`: by which id.
 */
export function Dialog({ label, titled, kind = "", close, children }) {
  const dialog = useRef(null);
  useEffect(() => {
    const shown = dialog.current;
    const before = document.activeElement;
    shown.showModal();
    return () => {
      shown.close();
      before.focus();
    };
  }, []);
  // A press beside what is in it is one on the dialog itself.
  const press = ({ target }) => {
    if (target === dialog.current) close();
  };
  return html`<dialog ref=${dialog} class="dialog ${kind}" aria-label=${label} aria-labelledby=${titled}
    onCancel=${close} onMouseDown=${press}>
    <div class="dialog-body">${children}</div>
  </dialog>`;
}

const question = signal(null);

/** Ask a question; promises whether the answer was yes. */
export function ask(text, { danger = false, label = "Go on" } = {}) {
  return new Promise((answer) => {
    question.value = { text, danger, label, answer };
  });
}

/** Where questions appear: once on the page. */
export function QuestionDialog() {
  const asked = question.value;
  if (!asked) return null;

  function close(answer) {
    question.value = null;
    asked.answer(answer);
  }

  return html`<${Dialog} titled="question" close=${() => close(false)}>
    <p id="question">${asked.text}</p>
    <div class="row align-end">
      <button type="button" class="button" onClick=${() => close(false)}>Back</button>
      <button type="button" class="button ${asked.danger ? "danger" : "primary"}"
        onClick=${() => close(true)}>${asked.label}</button>
    </div>
  </${Dialog}>`;
}
