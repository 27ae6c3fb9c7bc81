/** Anything that came out of `JSON.parse`, or may go into `JSON.stringify`. */
export type Json = unknown
export type Strings = Readonly<Record<string, string>>
