/** Any value that `JSON.parse` returns or `JSON.stringify` accepts. */
export type Json = unknown
export type Strings = Readonly<Record<string, string>>
