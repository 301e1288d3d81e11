// What the dashboard uses of Preact's signals.

export interface ReadonlySignal<T> {
  readonly value: T;
  peek(): T;
}

export interface Signal<T> extends ReadonlySignal<T> {
  value: T;
}

export function computed<T>(compute: () => T): ReadonlySignal<T>;
export function effect(run: () => void): () => void;
export function signal<T>(value: T): Signal<T>;
export function untracked<T>(run: () => T): T;
export function useSignal<T>(value: T): Signal<T>;
