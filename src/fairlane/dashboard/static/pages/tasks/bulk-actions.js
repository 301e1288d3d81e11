// Doing the same with many tasks: those that are selected, or all that match.

import { get, post } from "../../lib/api.js";
import { count, counted } from "../../lib/format.js";
import { may, STATES } from "../../lib/states.js";
import { changeAll, ROUTES } from "../../lib/bulk.js";
import { html } from "../../lib/preact.js";
import { ActionButton } from "../../ui/action-button.js";
import { amount, bodyOf } from "./query.js";

const VERBS = {
  replay: {
    label: "Replay",
    done: "ready again",
    warning: "They become ready to run, with all their retries.",
  },
  cancel: { label: "Cancel", done: "cancelled", danger: true, warning: "Those that run are told to stop." },
  delete: { label: "Delete", done: "deleted", danger: true, warning: "They cannot be brought back." },
};

/**
 * What can be done with a selection. `progress` is kept by whoever shows this, as for as long as there is
 * some: what was selected may be gone before the rest is.
 */
export function BulkActions({ selection, filter, total, progress, setProgress, refresh }) {
  const { chosen, whole, everything } = selection;
  const all = everything && total ? new AllMatching(filter, total) : new Selected(chosen);
  const running = progress?.stop;

  function clear() {
    setProgress(null);
    selection.clear();
  }

  async function run(verb) {
    const { done } = VERBS[verb];
    let stopped = false;
    const tell = (changed) => {
      if (stopped) throw new Stopped(changed);
      setProgress({
        done,
        changed,
        stop: () => {
          stopped = true;
        },
      });
    };
    try {
      tell(0);
      const changed = await all.change(verb, tell);
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

  return html`<div class="row bulk-actions" role="group" aria-label="Selected tasks">
    <b aria-live="polite">${
      progress ? `${count(progress.changed)} ${progress.done}` : `${all.name} selected`
    }</b>
    ${
      whole &&
      !everything &&
      total?.count > chosen.length &&
      html`<button type="button" class="button link"
        onClick=${selection.match}>Select all ${amount(total)} that match</button>`
    }
    ${Object.entries(VERBS).map(
      ([verb, { label, danger }]) => html`<${ActionButton} key=${verb} small danger=${danger}
        disabled=${running || all.none(verb)} confirm=${() => all.question(verb)} run=${() => run(verb)}>
        ${label}</${ActionButton}>`,
    )}
    ${
      running
        ? html`<progress aria-label="How far it is"></progress>
        <button type="button" class="button small" onClick=${running}>Stop</button>`
        : html`<button type="button" class="button link" onClick=${clear}>Clear the selection</button>`
    }
  </div>`;
}

class Stopped extends Error {
  constructor(changed) {
    super();
    this.changed = changed;
  }
}

/** Tasks that were selected one by one. */
class Selected {
  #tasks;

  constructor(tasks) {
    this.#tasks = tasks;
    this.name = count(tasks.length);
  }

  #able(verb) {
    return this.#tasks.filter((task) => may[verb](task.status));
  }

  none(verb) {
    return this.#able(verb).length === 0;
  }

  question(verb) {
    return question(verb, { count: this.#able(verb).length, exact: true }, this.#tasks.length);
  }

  async change(verb) {
    const able = this.#able(verb);
    const status = [...new Set(able.map((task) => task.status))];
    const { applied } = await post(ROUTES[verb], {
      task_ids: able.map((task) => task.task_id),
      status,
    });
    return applied;
  }
}

/** Tasks that match a filter, on whatever page. */
class AllMatching {
  #filter;
  #total;

  constructor(filter, total) {
    this.#filter = filter;
    this.#total = total;
    this.name = `All ${amount(total)}`;
  }

  // Of the states that match, those in which it can be done.
  #able(verb) {
    const { status } = this.#filter;
    return {
      ...this.#filter,
      status: STATES.filter((state) => may[verb](state) && (!status.length || status.includes(state))),
    };
  }

  none(verb) {
    return this.#able(verb).status.length === 0;
  }

  async question(verb) {
    return question(verb, await get("api/v1/tasks/count", this.#able(verb)), this.#total.count);
  }

  change(verb, tell) {
    return changeAll(verb, bodyOf(this.#able(verb)), tell);
  }
}

function question(verb, able, of) {
  const { label, warning } = VERBS[verb];
  if (able.exact && able.count === 0) throw new Error("None of them is in a state that allows it.");
  const rest =
    able.exact && able.count < of
      ? ` The other ${count(of - able.count)} are in a state that does not allow it.`
      : "";
  return `${label} ${amount(able)} ${able.exact && able.count === 1 ? "task" : "tasks"}? ${warning}${rest}`;
}
