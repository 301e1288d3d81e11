// Changing many tasks: those that fulfil a filter, however many they are.

import { post } from "./api.js";

/** The routes that change many tasks, by what they do. */
export const ROUTES = {
  replay: "api/v1/tasks/retry",
  cancel: "api/v1/tasks/cancel",
  delete: "api/v1/tasks/delete",
};

/**
 * "cancel", "replay" or "delete" all tasks of a filter. The server does some thousands at a time; `told` is
 * called with how many are done. Promises how many were changed.
 */
export const changeAll = (verb, filter, told) =>
  untilDone((cursor) => post(ROUTES[verb], { ...filter, cursor }), told);

/** The same with any request that is to be sent again with a cursor as long as it answers one. */
export async function untilDone(ask, told = () => {}) {
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
