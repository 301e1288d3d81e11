// @ts-check
// The search field of the palette, and its matches.

import { get } from "../../lib/api.js";
import { onValue } from "../../lib/inputs.js";
import { fetchLanes, NO_LANES } from "../../lib/lanes.js";
import { html, useEffect, useMemo, useRef, useState } from "../../lib/preact.js";
import { useResource } from "../../lib/resource.js";
import { navigate } from "../../lib/router.js";
import { boundTo } from "../../lib/session.js";
import { usablePages } from "../../pages/index.js";
import { Dialog } from "../dialog.js";
import { commands } from "./commands.js";
import { matchesFor } from "./matches.js";

/** @import { Match } from "./matches.js" */

// Among this many of the newest tasks, ids are found by their end, and tags by their text.
const RECENT = 100;
/** @type {Record<string, number>} */
const STEPS = { ArrowDown: 1, ArrowUp: -1 };

/** A combobox whose list is always open. @param {{ close: () => void, shortcuts: () => void }} props */
export function SearchDialog({ close, shortcuts }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const { data, error } = useResource(load, []);
  const matches = useMemo(
    () => matchesFor(text, { pages: usablePages(), commands: commands(shortcuts), ...(data ?? NOTHING) }),
    [text, data],
  );
  const list = useRef(/** @type {HTMLElement | null} */ (null));
  const current = Math.min(at, matches.length - 1);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: "nearest" });
  }, [current]);

  /** @param {Match} match */
  function choose(match) {
    close();
    if (match.address) navigate(match.address);
    else match.run?.();
  }

  /** @param {KeyboardEvent} event */
  function press(event) {
    if (!matches.length) return;
    const step = STEPS[event.key];
    if (step) setAt((current + step + matches.length) % matches.length);
    else if (event.key === "Enter") choose(matches[current]);
    else return;
    event.preventDefault();
  }

  /** @param {string} value */
  function type(value) {
    setText(value);
    setAt(0);
  }

  return html`<${Dialog} label="Search" kind="search-dialog" close=${close}>
    <input type="text" role="combobox" aria-label="Search" aria-expanded="true" aria-controls="found"
      aria-autocomplete="list" aria-activedescendant=${matches.length ? `found-${current}` : undefined}
      autocomplete="off" spellcheck=${false} value=${text} onInput=${onValue(type)} onKeyDown=${press}
      placeholder="A page, type, queue, schedule, name:value, or the id of a task" />
    ${error && html`<p class="error-text" role="alert">${error.message}</p>`}
    <ul id="found" role="listbox" aria-label="Found" ref=${list}>
      ${matches.map(
        (match, index) =>
          html`<li key=${match.key} id=${`found-${index}`} role="option" aria-selected=${index === current}
            onPointerMove=${() => setAt(index)} onClick=${() => choose(match)}>
            <span class="grow ellipsis">${match.label}</span>
            <span class="muted">${match.hint}</span>
            <span class="match-kind">${match.kind}</span>
          </li>`,
      )}
    </ul>
    ${
      matches.length === 0 &&
      html`<p class="muted" role="status">No match. The complete id of a task always finds it.</p>`
    }
  </${Dialog}>`;
}

const NOTHING = { ...NO_LANES, schedules: [], tasks: [] };

/** @param {AbortSignal} abort */
async function load(abort) {
  const [lanes, { tasks }, schedules] = await Promise.all([
    fetchLanes(abort),
    get("api/v1/tasks/summaries", { limit: RECENT }, abort),
    fetchSchedules(abort),
  ]);
  return { ...lanes, tasks, schedules };
}

/** Viewers with a bound token are not told of schedules. @param {AbortSignal} abort */
const fetchSchedules = async (abort) =>
  boundTo.value === null ? (await get("api/v1/schedules", { limit: RECENT }, abort)).schedules : [];
