// @ts-check
// The same action for many tasks: those that are selected, or all that match.

import { get, post } from "../../lib/api.js";
import { changeAll, ROUTES } from "../../lib/bulk.js";
import { count, counted } from "../../lib/format.js";
import { html } from "../../lib/preact.js";
import { may, STATES } from "../../lib/states.js";
import { ActionButton } from "../../ui/action-button.js";
import { amount, bodyOf } from "./query.js";

/**
 * @import { Total } from "../../../types/api.js"
 * @import { Verb } from "../../lib/bulk.js"
 * @import { ListedTask, Selection } from "../../lib/selection.js"
 * @import { Filter } from "./query.js"
 * @typedef {{ done: string, changed: number, stop: (() => void) | null }} BulkProgress
 */

/** @type {Record<Verb, { label: string, done: string, danger?: boolean, warning: string }>} */
const VERBS = {
  replay: {
    label: "Replay",
    done: "replayed",
    warning: "They become ready to run, with all their retries.",
  },
  cancel: {
    label: "Cancel",
    done: "cancelled",
    danger: true,
    warning: "Workers are asked to stop those that run.",
  },
  delete: { label: "Delete", done: "deleted", danger: true, warning: "They cannot be restored." },
};

/**
 * The page keeps `progress`, and shows this for as long as there is some: the selected tasks may be gone
 * before all is done.
 *
 * @param {object} props
 * @param {Selection} props.selection
 * @param {Filter} props.filter
 * @param {Total} [props.total]
 * @param {BulkProgress | null} props.progress
 * @param {(next: BulkProgress | null | ((last: BulkProgress | null) => BulkProgress | null)) => void}
 *   props.setProgress
 * @param {() => Promise<unknown>} props.refresh
 */
export function BulkActions({ selection, filter, total, progress, setProgress, refresh }) {
  const { selected, wholePage, allMatching } = selection;
  const tasks = allMatching && total ? new AllMatching(filter, total) : new Selected(selected);
  const stop = progress?.stop;

  function clear() {
    setProgress(null);
    selection.clear();
  }

  /** @param {Verb} verb */
  async function run(verb) {
    const { done } = VERBS[verb];
    let stopped = false;
    const report = (/** @type {number} */ changed) => {
      if (stopped) throw new Stopped(changed);
      const stopIt = () => {
        stopped = true;
      };
      setProgress({ done, changed, stop: stopIt });
    };
    try {
      report(0);
      const changed = await tasks.change(verb, report);
      clear();
      return `${counted(changed, "task")} ${done}.`;
    } catch (error) {
      if (!(error instanceof Stopped)) {
        setProgress((last) => last && { ...last, stop: null });
        throw error;
      }
      clear();
      return `Stopped: ${counted(error.changed, "task")} ${done}.`;
    } finally {
      await refresh();
    }
  }

  /** @param {Verb} verb */
  const button = (verb) => html`<${ActionButton} key=${verb} small danger=${VERBS[verb].danger}
    disabled=${stop || tasks.none(verb)} confirm=${() => tasks.question(verb)} run=${() => run(verb)}>
    ${VERBS[verb].label}
  </${ActionButton}>`;
  const status = progress ? `${count(progress.changed)} ${progress.done}` : `${tasks.name} selected`;
  return html`<div class="row bulk-actions" role="group" aria-label="Selected tasks">
    <b aria-live="polite">${status}</b>
    ${
      wholePage &&
      !allMatching &&
      total &&
      total.count > selected.length &&
      html`<button type="button" class="button link" onClick=${selection.selectAllMatching}>
        Select all ${amount(total)} that match
      </button>`
    }
    ${button("replay")}${button("cancel")}${button("delete")}
    ${
      stop
        ? html`<progress aria-label="Progress"></progress>
        <button type="button" class="button small" onClick=${stop}>Stop</button>`
        : html`<button type="button" class="button link" onClick=${clear}>Clear the selection</button>`
    }
  </div>`;
}

class Stopped extends Error {
  /** @param {number} changed */
  constructor(changed) {
    super();
    this.changed = changed;
  }
}

/** Tasks that were selected one by one. */
class Selected {
  #tasks;

  /** @param {ListedTask[]} tasks */
  constructor(tasks) {
    this.#tasks = tasks;
    this.name = count(tasks.length);
  }

  /** @param {Verb} verb */
  #able(verb) {
    return this.#tasks.filter((task) => may[verb](task.status));
  }

  /** @param {Verb} verb */
  none(verb) {
    return this.#able(verb).length === 0;
  }

  /** @param {Verb} verb */
  question(verb) {
    return question(verb, { count: this.#able(verb).length, exact: true }, this.#tasks.length);
  }

  /** @param {Verb} verb */
  async change(verb) {
    const able = this.#able(verb);
    const status = [...new Set(able.map((task) => task.status))];
    const { applied } = await post(ROUTES[verb], { task_ids: able.map((task) => task.task_id), status });
    return applied;
  }
}

/** Tasks that match a filter, on whatever page. */
class AllMatching {
  #filter;
  #total;

  /** @param {Filter} filter @param {Total} total */
  constructor(filter, total) {
    this.#filter = filter;
    this.#total = total;
    this.name = `All ${amount(total)}`;
  }

  /** Return the filter, with only those states that allow it. @param {Verb} verb */
  #able(verb) {
    const { status } = this.#filter;
    const allowed = STATES.filter((state) => may[verb](state) && (!status.length || status.includes(state)));
    return { ...this.#filter, status: allowed };
  }

  /** @param {Verb} verb */
  none(verb) {
    return this.#able(verb).status.length === 0;
  }

  /** @param {Verb} verb */
  async question(verb) {
    return question(verb, await get("api/v1/tasks/count", this.#able(verb)), this.#total.count);
  }

  /** @param {Verb} verb @param {(done: number) => void} report */
  change(verb, report) {
    return changeAll(verb, bodyOf(this.#able(verb)), report);
  }
}

/** @param {Verb} verb @param {Total} able @param {number} of */
function question(verb, able, of) {
  const { label, warning } = VERBS[verb];
  if (able.exact && able.count === 0) throw new Error("None of them is in a state that allows it.");
  const others = able.exact && able.count < of ? count(of - able.count) : null;
  const rest = others ? ` The other ${others} are in a state that does not allow it.` : "";
  return `${label} ${amount(able)} ${able.exact && able.count === 1 ? "task" : "tasks"}? ${warning}${rest}`;
}
