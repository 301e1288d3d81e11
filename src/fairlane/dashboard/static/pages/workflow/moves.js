// @ts-check
// Where the arrow keys lead in a graph.

/** @import { Place } from "./layout.js" */

/** @type {Record<string, [right: number, down: number]>} */
const DIRECTIONS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
// What lies straight ahead is nearer than what lies aside.
const ASIDE = 3;

/**
 * Return the nearest box in a direction.
 *
 * @param {Map<string, Place>} places
 * @param {string} from
 * @param {string} key
 */
export function nextInDirection(places, from, key) {
  const direction = DIRECTIONS[key];
  const here = places.get(from);
  if (!direction || !here) return null;
  const [right, down] = direction;
  let [next, least] = [/** @type {string | null} */ (null), Infinity];
  for (const [id, place] of places) {
    const [x, y] = [place.x - here.x, place.y + place.height / 2 - here.y - here.height / 2];
    const ahead = x * right + y * down;
    const distance = ahead + ASIDE * Math.abs(x * down + y * right);
    if (ahead > 1 && distance < least) [next, least] = [id, distance];
  }
  return next;
}
