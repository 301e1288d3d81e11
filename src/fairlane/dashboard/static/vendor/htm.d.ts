import { h, VNode } from "./preact.js";

/** Several elements side by side become an array; nothing tells in advance. */
declare const htm: {
  bind(create: typeof h): (strings: TemplateStringsArray, ...values: unknown[]) => VNode;
};
export default htm;
