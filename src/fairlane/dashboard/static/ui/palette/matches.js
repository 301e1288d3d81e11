// @ts-check
// What a search text may mean.

import { shortId, spaced } from "../../lib/format.js";
import { link } from "../../lib/router.js";
import { STATES } from "../../lib/states.js";

/**
 * @import { QueueView, ScheduleView, TaskSummary, TypeView } from "../../../types/api.js"
 * @import { Command } from "./commands.js"
 */

/**
 * @typedef {object} Match
 * @property {string} key
 * @property {string} kind
 * @property {string} label
 * @property {string} [hint]
 * @property {string} [address] Where it leads.
 * @property {() => void} [run] What it does, if it leads nowhere.
 */

/**
 * @typedef {object} Known What can be found.
 * @property {{ name: string, title: string }[]} pages
 * @property {Command[]} commands
 * @property {TypeView[]} types
 * @property {QueueView[]} queues
 * @property {ScheduleView[]} schedules Those that are due next.
 * @property {TaskSummary[]} tasks The newest ones.
 */

const MOST = 12;
const ID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const TAIL = /^[0-9a-f-]{3,35}$/;
const TAG = /^([^:\s]+):(\S.*)$/;

/**
 * Return what a text may mean, the likeliest first.
 *
 * @param {string} text
 * @param {Known} known
 * @returns {Match[]}
 */
export function matchesFor(text, known) {
  const wanted = text.trim().replace(/^…/, "");
  return [...idsAndTags(wanted, known.tasks), ...names(wanted.toLowerCase(), known)].slice(0, MOST);
}

/** @param {string} wanted @param {TaskSummary[]} tasks @returns {Match[]} */
function idsAndTags(wanted, tasks) {
  const id = wanted.toLowerCase();
  if (ID.test(id)) {
    const task = tasks.find((each) => each.task_id === id);
    return [task ? taskMatch(task) : { ...idMatch(id), label: id }];
  }
  const tails = TAIL.test(id) ? tasks.filter((each) => each.task_id.endsWith(id)).map(taskMatch) : [];
  const pair = wanted.replace(/^tag:/, "");
  return TAG.test(pair) ? [...tails, tagMatch(pair)] : tails;
}

/** @param {string} wanted @param {Known} known */
function names(wanted, known) {
  const texts = wanted.split(/\s+/);
  return everything(known)
    .map((match) => ({ match, rank: rank(match, texts) }))
    .filter((each) => each.rank < Infinity)
    .sort((one, other) => one.rank - other.rank)
    .map(({ match }) => match)
    .filter((match) => match.key !== tagMatch(wanted).key);
}

/** @param {Known} known @returns {Match[]} */
function everything({ pages, commands, types, queues, schedules, tasks }) {
  return [
    ...pages.map(({ name, title }) => linked("page", name, title, link(name))),
    ...STATES.map((state) => linked("status", state, spaced(state), link("tasks", { status: state }))),
    ...types.map(({ type }) => linked("type", type, type, link("tasks", { type }))),
    ...queues.map(({ queue }) => linked("queue", queue, queue, link("tasks", { queue }))),
    ...schedules.map(({ schedule_id: id }) => linked("schedule", id, id, link(["schedules", id]))),
    ...tagsOf(tasks).map(tagMatch),
    ...commands.map((command) => ({ key: `command ${command.label}`, kind: "command", ...command })),
  ];
}

/** @param {TaskSummary[]} tasks */
const tagsOf = (tasks) => [
  ...new Set(tasks.flatMap(({ tags }) => Object.entries(tags).map((pair) => pair.join(":")))),
];

/**
 * @param {string} kind
 * @param {string} name
 * @param {string} label
 * @param {string} address
 * @returns {Match}
 */
const linked = (kind, name, label, address) => ({ key: `${kind} ${name}`, kind, label, address });

/** @param {string} pair */
const tagMatch = (pair) => linked("tag", pair, pair, link("tasks", { tag: pair }));

/** @param {string} id */
const idMatch = (id) => linked("task", id, shortId(id), link(["tasks", id]));

/** @param {TaskSummary} task @returns {Match} */
const taskMatch = ({ task_id: id, task_type: type, status }) => ({
  ...idMatch(id),
  label: `${type} ${shortId(id)}`,
  hint: spaced(status),
});

/**
 * What begins with the text comes before what contains it. The kind may be typed as well: "type mail".
 *
 * @param {Match} match
 * @param {string[]} texts
 */
function rank({ label, kind }, texts) {
  const name = label.toLowerCase();
  if (!texts.every((text) => name.includes(text) || kind.startsWith(text))) return Infinity;
  return name.startsWith(texts[0]) ? 0 : 1;
}
