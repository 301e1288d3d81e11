// @ts-check
// Replay and delete dead letters: some, a group, or all that match.

import { get, post, remove } from "../../lib/api.js";
import { ROUTES, untilDone } from "../../lib/bulk.js";
import { counted } from "../../lib/format.js";
import { html, useMemo } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { ReplayTerms } from "../../ui/replay-terms.js";
import { bodyOf, isUnfiltered, queryOf } from "./query.js";

/**
 * @import { ReplayTerms as Terms, TaskView, Total } from "../../../types/api.js"
 * @import { View } from "./query.js"
 */

/** Dead letters that were selected one by one. */
export class SelectedLetters {
  #ids;

  /** @param {Pick<TaskView, "task_id">[]} tasks */
  constructor(tasks) {
    this.#ids = tasks.map((task) => task.task_id);
  }

  /** @returns {Promise<Total>} */
  async count() {
    return { count: this.#ids.length, exact: true };
  }

  // Change only those that are still dead letters: somebody else may have been quicker.

  /** @param {Terms} terms */
  async replay(terms) {
    const { applied } = await post(ROUTES.replay, { task_ids: this.#ids, status: "dead_letter", ...terms });
    return applied;
  }

  async delete() {
    const { applied } = await post(ROUTES.delete, { task_ids: this.#ids, status: "dead_letter" });
    return applied;
  }
}

/** The dead letters of a view, on whatever page. */
export class MatchingLetters {
  #view;
  #total;

  /** @param {Partial<View>} view @param {Total} [total] How many they are, if it is known already. */
  constructor(view, total) {
    this.#view = view;
    this.#total = total;
  }

  /** @returns {Promise<Total>} */
  async count() {
    if (this.#total) return this.#total;
    const { failure: _, ...query } = queryOf(this.#view);
    return get("api/v1/tasks/count", { ...query, status: "dead_letter" });
  }

  /** @param {Terms} terms */
  replay(terms) {
    const body = { ...bodyOf(this.#view), ...terms };
    return untilDone((cursor) => post("api/v1/dlq/replay", { ...body, cursor }));
  }

  delete() {
    const query = { ...queryOf(this.#view), all: isUnfiltered(this.#view) || null };
    return untilDone((cursor) => remove("api/v1/dlq", { ...query, cursor }));
  }
}

/**
 * Buttons for letters; `of` describes them, `changed` is called after a change.
 *
 * @param {{ letters: SelectedLetters | MatchingLetters, of?: string, changed: () => Promise<unknown> }} props
 */
export function LetterActions({ letters, of = "", changed }) {
  const terms = useMemo(() => /** @type {Terms} */ ({}), []);

  /** @param {string} verb @param {string} rest */
  async function questionOf(verb, rest) {
    const { count, exact } = await letters.count();
    return `${verb} ${exact ? "" : "more than "}${counted(count, "dead letter")}${of}? ${rest}`;
  }

  async function replayQuestion() {
    const question = await questionOf("Replay", "They run again as soon as a worker is free.");
    return html`<${ReplayTerms} terms=${terms} question=${question} many priority="as before" />`;
  }

  const deleteQuestion = () => questionOf("Delete", "They cannot be restored.");

  /** @param {Promise<number>} change @param {string} done */
  async function report(change, done) {
    const applied = await change;
    await changed();
    return `${counted(applied, "dead letter")} ${done}.`;
  }

  return html`
    <${ActionButton} small confirm=${replayQuestion} run=${() => report(letters.replay(terms), "replayed")}>
      Replay
    </${ActionButton}>
    <${ActionButton} small danger confirm=${deleteQuestion} run=${() => report(letters.delete(), "deleted")}>
      Delete
    </${ActionButton}>`;
}
