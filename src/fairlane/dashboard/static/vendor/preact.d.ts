// What the dashboard uses of Preact.

export interface VNode {
  type: unknown;
  props: Record<string, unknown>;
  key: unknown;
}

/** What a component may show. */
export type Children = VNode | string | number | boolean | null | undefined | Children[];

export abstract class Component<Props> {
  props: Props;
  abstract render(props: Props): Children;
  shouldComponentUpdate?(next: Props): boolean;
}

export function h(type: unknown, props: object | null, ...children: unknown[]): VNode;
export function render(children: Children, parent: Element): void;
