// Changing many tasks: those that fulfil a filter, however many they are.

import { post } from "./api.js";

/**
 * "cancel", "retry" or "delete" all tasks of a filter. The server does some thousands at a time; `told` is
 * called with how many are done. Promises how many were changed.
 */
export const sweep = (verb, filter, told) =>
  through((cursor) => post(`api/v1/tasks/${verb}`, { ...filter, cursor }), told);

/** The same with any request that is to be sent again with a cursor as long as it answers one. */
export async function through(ask, told = () => {}) {
  let done = 0;
  let cursor = null;
  do {
    const answer = await ask(cursor);
    done += answer.applied;
    cursor = answer.next_cursor;
    told(done);
  } while (cursor);
  return done;
}
