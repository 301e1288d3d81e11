// What a text may mean: pure, so that it can be told without a page.

import { shortId, spaced } from "../../lib/format.js";
import { STATES } from "../../lib/states.js";
import { link } from "../../lib/router.js";

const MOST = 12;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TAIL = /^[0-9a-f-]{3,35}$/;
const TAG = /^([^:\s]+):(\S.*)$/;

/**
 * What there is for a text, the likeliest first: [{key, kind, label, hint, address or run}].
 * among: {pages, commands, types, queues, tasks (the newest)}.
 */
export function matchesFor(text, among) {
  const wanted = text.trim().replace(/^…/, "");
  return [...named(wanted, among), ...matching(wanted.toLowerCase(), among)].slice(0, MOST);
}

// What can only mean one thing: an id, or a tag.
function named(wanted, { tasks }) {
  const id = wanted.toLowerCase();
  if (ID.test(id)) return [task(tasks.find((each) => each.task_id === id) ?? { task_id: id })];
  const tails = TAIL.test(id) ? tasks.filter((each) => each.task_id.endsWith(id)).map(task) : [];
  const pair = wanted.replace(/^tag:/, "");
  return TAG.test(pair) ? [...tails, tag(pair)] : tails;
}

function matching(wanted, among) {
  const texts = wanted.split(/\s+/);
  return everything(among)
    .map((item) => ({ item, rank: rank(item, texts) }))
    .filter(({ rank: found }) => found < Infinity)
    .sort((one, other) => one.rank - other.rank)
    .map(({ item }) => item)
    .filter((item) => item.key !== tag(wanted).key);
}

function everything({ pages, commands, types, queues, tasks }) {
  return [
    ...pages.map(({ name, title }) => ({
      key: `page ${name}`,
      kind: "page",
      label: title,
      address: link(name),
    })),
    ...STATES.map((state) => ({
      key: `state ${state}`,
      kind: "status",
      label: spaced(state),
      address: link("tasks", { status: state }),
    })),
    ...types.map(({ type }) => ({
      key: `type ${type}`,
      kind: "type",
      label: type,
      address: link("tasks", { type }),
    })),
    ...queues.map(({ queue }) => ({
      key: `queue ${queue}`,
      kind: "queue",
      label: queue,
      address: link("tasks", { queue }),
    })),
    ...tagsOf(tasks).map(tag),
    ...commands.map((command) => ({ key: `command ${command.label}`, kind: "command", ...command })),
  ];
}

const tagsOf = (tasks) => [
  ...new Set(tasks.flatMap(({ tags }) => Object.entries(tags).map((pair) => pair.join(":")))),
];

const tag = (pair) => ({
  key: `tag ${pair}`,
  kind: "tag",
  label: pair,
  address: link("tasks", { tag: pair }),
});

const task = ({ task_id: id, task_type: type, status }) => ({
  key: `task ${id}`,
  kind: "task",
  label: type ? `${type} ${shortId(id)}` : id,
  hint: status && spaced(status),
  address: link(["tasks", id]),
});

// What begins with the text goes before what has it somewhere; its kind may be typed too: "type mail".
function rank({ label, kind }, texts) {
  const name = label.toLowerCase();
  if (!texts.every((text) => name.includes(text) || kind.startsWith(text))) return Infinity;
  return name.startsWith(texts[0]) ? 0 : 1;
}
