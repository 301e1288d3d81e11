import { get } from "../../lib/api.js";
import { useResource } from "../../lib/resource.js";
import { navigate } from "../../lib/router.js";
import { html, useEffect, useMemo, useRef, useState } from "../../lib/preact.js";
import { PAGES } from "../../pages/index.js";
import { Dialog } from "../dialog.js";
import { commands } from "./commands.js";
import { matchesFor } from "./matches.js";

// Of the newest tasks the ends of their ids are known, and their tags.
const RECENT = 100;

/** The field and what is found for it: a combobox, whose list is always there. */
export function SearchDialog({ close, shortcuts }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const { data, error } = useResource(known, []);
  const items = useMemo(
    () => matchesFor(text, { pages: PAGES, commands: commands(shortcuts), ...(data ?? NOTHING) }),
    [text, data],
  );
  const list = useRef(null);
  const current = Math.min(at, items.length - 1);
  useEffect(() => {
    list.current?.children[current]?.scrollIntoView({ block: "nearest" });
  }, [current]);

  function choose(item) {
    close();
    if (item.address) navigate(item.address);
    else item.run();
  }

  function press(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps && items.length) setAt((current + steps[event.key] + items.length) % items.length);
    else if (event.key === "Enter" && items.length) choose(items[current]);
    else return;
    event.preventDefault();
  }

  function type(event) {
    setText(event.target.value);
    setAt(0);
  }

  return html`<${Dialog} label="Search" kind="search-dialog" close=${close}>
    <input type="text" role="combobox" aria-label="Search" aria-expanded="true" aria-controls="found"
      aria-autocomplete="list"
      aria-activedescendant=${items.length ? `found-${current}` : undefined} autocomplete="off"
      spellcheck=${false}
      placeholder="A page, type, queue, name:value, or the id of a task" value=${text} onInput=${type}
      onKeyDown=${press} />
    ${error && html`<p class="error-text" role="alert">${error.message}</p>`}
    <ul id="found" role="listbox" aria-label="Found" ref=${list}>
      ${items.map(
        (
          item,
          index,
        ) => html`<li key=${item.key} id=${`found-${index}`} role="option" aria-selected=${index === current}
          onPointerMove=${() => setAt(index)} onClick=${() => choose(item)}>
          <span class="grow ellipsis">${item.label}</span><span class="muted">${item.hint}</span>
          <span class="match-kind">
            ${item.kind}</span>
        </li>`,
      )}
    </ul>
    ${
      items.length === 0 &&
      html`<p class="muted" role="status">Nothing is called that. The whole id of a task always finds it.</p>`
    }
  </${Dialog}>`;
}

const NOTHING = { types: [], queues: [], tasks: [] };

async function known(abort) {
  const [{ types }, { queues }, { tasks }] = await Promise.all([
    get("api/v1/types", {}, abort),
    get("api/v1/queues", {}, abort),
    get("api/v1/tasks/summaries", { limit: RECENT }, abort),
  ]);
  return { types, queues, tasks };
}
