// What has not changed is not drawn again.

import { Component, html, useRef } from "./preact.js";

/** These objects, told apart by `name`; those that say the same as at the last time are the very same. */
export function useStable(objects, name) {
  const last = useRef(new Map());
  const next = new Map();
  for (const each of objects) {
    const text = JSON.stringify(each);
    const before = last.current.get(each[name]);
    next.set(each[name], before?.text === text ? before : { text, each });
  }
  last.current = next;
  return Array.from(next.values(), ({ each }) => each);
}

/** The component, drawn anew only if it is given something else. */
export const memo = (inner) =>
  class extends Component {
    shouldComponentUpdate(next) {
      return Object.keys(next).some((name) => next[name] !== this.props[name]);
    }

    render(props) {
      return html`<${inner} ...${props} />`;
    }
  };
