// What can be done with dead letters: with some, a group, or all that match.

import { get, post, remove } from "../../lib/api.js";
import { counted } from "../../lib/format.js";
import { ROUTES, untilDone } from "../../lib/bulk.js";
import { html, useMemo } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { ReplayTerms } from "../../ui/replay-terms.js";
import { bodyOf, isUnfiltered, queryOf } from "./query.js";

/** Those that were picked. */
export class SelectedLetters {
  constructor(tasks) {
    this.tasks = tasks;
    this.ids = tasks.map((task) => task.task_id);
  }

  count = async () => ({ count: this.ids.length, exact: true });

  replay = (terms) => this.#change("replay", terms);

  purge = () => this.#change("delete", {});

  // Only what still is a dead letter: somebody else may have been quicker.
  async #change(verb, terms) {
    const { applied } = await post(ROUTES[verb], {
      task_ids: this.ids,
      status: "dead_letter",
      ...terms,
    });
    return applied;
  }
}

/** Those of a view, on whatever page. `known`: how many they are, where no counter knows that. */
export class MatchingLetters {
  constructor(view, known) {
    this.view = view;
    this.known = known;
  }

  count = async () =>
    this.known ?? get("api/v1/tasks/count", { ...queryOf(this.view), status: "dead_letter" });

  replay(terms) {
    const body = { ...bodyOf(this.view), ...terms };
    return untilDone((cursor) => post("api/v1/dlq/replay", { ...body, cursor }));
  }

  purge() {
    const query = { ...queryOf(this.view), all: isUnfiltered(this.view) || null };
    return untilDone((cursor) => remove("api/v1/dlq", { ...query, cursor }));
  }
}

/** Buttons to replay and to delete them; `changed` is called when that was done. */
export function LetterActions({ what, of = "", small = false, changed }) {
  const terms = useMemo(() => ({}), []);

  async function asked(verb, rest) {
    const { count, exact } = await what.count();
    return `${verb} ${exact ? "" : "more than "}${counted(count, "dead letter")}${of}? ${rest}`;
  }
  const done = (word) => async (applied) => {
    await changed();
    return `${counted(applied, "dead letter")} ${word}.`;
  };
  const question = async () =>
    html`<${ReplayTerms} terms=${terms}
      question=${await asked("Replay", "They run again as soon as a worker is free.")} before="as before" />`;

  return html`
    <${ActionButton} small=${small} confirm=${question}
      run=${() => what.replay(terms).then(done("replayed"))}>Replay</${ActionButton}>
    <${ActionButton} small=${small} danger confirm=${() => asked("Delete", "They cannot be brought back.")}
      run=${() => what.purge().then(done("deleted"))}>Delete</${ActionButton}>`;
}
