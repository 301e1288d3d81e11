// The pages there are. Schedules and workflows will have theirs behind the queues.

/**
 * In the order of the navigation. A page is loaded when somebody goes there: what comes first stays small.
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
    load: async () => (await import("./tasks.js")).Tasks,
    child: { title: "Task", load: async () => (await import("./task.js")).Task },
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
];

/** The page of an address, if there is one: ["tasks"] is a page, ["tasks", id] one below it. */
export function pageOf([name = "", ...rest]) {
  const found = PAGES.find((each) => each.name === name);
  if (rest.length === 0) return found;
  return rest.length === 1 ? found?.child : undefined;
}

/** Fetch a page that is likely to be wanted. If that fails it shows when it is. */
export const preload = (page) => page?.load().catch(() => {});
