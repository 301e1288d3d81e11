// Lists of tasks, and what they are filtered by.

import { get } from "./api.js";

// The server looks at so many tasks a call: a page may come in pieces. This many are put together.
const PIECES = 10;

/** A page of a list of tasks: {tasks, next (the cursor to go on from)}. */
export async function pageOf(path, query, { limit, cursor }, abort) {
  let tasks = [];
  let next = cursor;
  let pieces = 0;
  do {
    const found = await get(path, { ...query, limit: limit - tasks.length, cursor: next }, abort);
    tasks = [...tasks, ...found.tasks];
    next = found.next_cursor;
    pieces += 1;
  } while (next && tasks.length < limit && pieces < PIECES);
  return { tasks, next };
}

/** A tag, "name:value" → ["name", "value"]; a value may have colons. */
export function splitTag(tag) {
  const colon = tag.indexOf(":");
  return [tag.slice(0, colon), tag.slice(colon + 1)];
}
