// @ts-check
// The pages, in the order of the navigation. Each is loaded on demand, to keep the first view small.

import { boundTo, hasScope } from "../lib/session.js";

/**
 * @import { Scope } from "../../types/api.js"
 * @import { Children } from "../lib/preact.js"
 * @import { IconName } from "../ui/icons.js"
 * @typedef {(props: { parts: string[], query: URLSearchParams }) => Children} PageComponent
 * @typedef {() => Promise<PageComponent>} LoadPage
 * @typedef {{ title: string, load: LoadPage }} Page
 * @typedef {{ icon?: IconName, scope?: Scope, bound?: boolean, child?: Page }} PageOptions
 * @typedef {Page & PageOptions & { name: string }} NamedPage
 */

/**
 * `bound`: also for viewers with a bound token. The others tell of everybody's tasks. `scope`: what its
 * action takes. A page without an icon is not in the navigation.
 *
 * @type {NamedPage[]}
 */
export const PAGES = [
  {
    name: "",
    title: "Overview",
    icon: "overview",
    load: async () => (await import("./overview.js")).Overview,
  },
  {
    name: "tasks",
    title: "Tasks",
    icon: "tasks",
    bound: true,
    load: async () => (await import("./tasks.js")).Tasks,
    child: { title: "Task", load: async () => (await import("./task.js")).Task },
  },
  {
    name: "workflows",
    title: "Workflows",
    icon: "workflows",
    bound: true,
    load: async () => (await import("./workflows.js")).Workflows,
    child: { title: "Workflow", load: async () => (await import("./workflow.js")).Workflow },
  },
  {
    name: "schedules",
    title: "Schedules",
    icon: "schedules",
    load: async () => (await import("./schedules.js")).Schedules,
    child: { title: "Schedule", load: async () => (await import("./schedule.js")).Schedule },
  },
  {
    name: "queues",
    title: "Queues and types",
    icon: "queues",
    load: async () => (await import("./queues.js")).Queues,
  },
  {
    name: "workers",
    title: "Workers",
    icon: "workers",
    load: async () => (await import("./workers.js")).Workers,
  },
  { name: "dead", title: "Dead letters", icon: "dead", load: async () => (await import("./dead.js")).Dead },
  {
    name: "submit",
    title: "Submit a task",
    scope: "submit",
    bound: true,
    load: async () => (await import("./submit.js")).Submit,
  },
  {
    name: "schedule",
    title: "Create a schedule",
    scope: "admin",
    load: async () => (await import("./schedule-form.js")).ScheduleForm,
  },
];

/**
 * Return the page of an address, if there is one: ["tasks"] is a page, ["tasks", id] its child.
 *
 * @param {string[]} parts
 * @returns {Page | undefined}
 */
export function pageOf([name = "", ...rest]) {
  const page = PAGES.find((each) => each.name === name);
  if (rest.length === 0) return page;
  return rest.length === 1 ? page?.child : undefined;
}

/** The pages that the viewer may see. */
export const visiblePages = () => PAGES.filter(({ bound }) => bound || boundTo.value === null);

/** The pages on which the viewer may do what they are for. */
export const usablePages = () => visiblePages().filter(({ scope }) => !scope || hasScope(scope));

/** @param {string[]} parts */
export const isVisible = ([name = ""]) => visiblePages().some((page) => page.name === name);

/** Load a page that is likely to be opened. An error shows when it is. @param {Page | undefined} page */
export const preload = (page) => page?.load().catch(() => {});
