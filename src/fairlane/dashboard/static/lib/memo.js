// @ts-check
// Avoids drawing again what has not changed.

import { Component, html, useRef } from "./preact.js";

/**
 * @import { Children } from "./preact.js"
 */

/**
 * Return these objects, with each that says the same as last time replaced by the very same object.
 *
 * @template T
 * @param {T[]} objects
 * @param {(object: T) => string} nameOf Tells the objects apart.
 * @returns {T[]}
 */
export function useStable(objects, nameOf) {
  /** @type {Map<string, { text: string, object: T }>} */
  const empty = new Map();
  const last = useRef(empty);
  const next = new Map(
    objects.map((object) => {
      const text = JSON.stringify(object);
      const before = last.current.get(nameOf(object));
      return [nameOf(object), before?.text === text ? before : { text, object }];
    }),
  );
  last.current = next;
  return Array.from(next.values(), ({ object }) => object);
}

/**
 * Wrap a component so that it is drawn again only if one of its properties changed.
 *
 * @template {object} Props
 * @param {(props: Props) => Children} inner
 */
export const memo = (inner) =>
  /** @extends {Component<Props>} */
  class extends Component {
    /** @param {Props} next */
    shouldComponentUpdate(next) {
      const last = /** @type {Record<string, unknown>} */ (this.props);
      return Object.entries(next).some(([name, value]) => value !== last[name]);
    }

    /** @param {Props} props */
    render(props) {
      return html`<${inner} ...${props} />`;
    }
  };
