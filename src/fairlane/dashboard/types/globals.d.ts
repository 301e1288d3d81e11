// What browsers have and TypeScript does not know yet.

interface JSON {
  /** A number as it stands in the text, however many digits it has; older browsers have none of this. */
  rawJSON?(text: string): object;
  isRawJSON?(value: unknown): boolean;
  parse(
    text: string,
    reviver: ((name: string, value: unknown, context: { source: string }) => unknown) | undefined,
  ): unknown;
}
