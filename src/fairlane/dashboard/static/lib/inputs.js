// @ts-check
// Handlers of events that only want to know what was entered or chosen.

/** @param {(value: string) => void} use */
export const onValue = (use) => (/** @type {Event} */ event) =>
  use(/** @type {HTMLInputElement | HTMLSelectElement} */ (event.currentTarget).value);

/** @param {(checked: boolean) => void} use */
export const onChecked = (use) => (/** @type {Event} */ event) =>
  use(/** @type {HTMLInputElement} */ (event.currentTarget).checked);

/** @param {(open: boolean) => void} use */
export const onToggled = (use) => (/** @type {Event} */ event) =>
  use(/** @type {HTMLDetailsElement} */ (event.currentTarget).open);

/** Prevent a form from being sent, and do something else. @param {() => void} [use] */
export const onSubmit = (use) => (/** @type {Event} */ event) => {
  event.preventDefault();
  use?.();
};
