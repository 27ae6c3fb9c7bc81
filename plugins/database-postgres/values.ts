import pg from "pg"

const oid = { int8: 20, int8Array: 1016, date: 1082, dateArray: 1182, textArray: 1009 }

const parseInt8Array = (text: string): unknown => {
  const items: readonly (string | null)[] = pg.types.getTypeParser(oid.textArray)(text)
  return items.map((item) => (item === null ? null : BigInt(item)))
}

const parsers = new Map<number, (text: string) => unknown>([
  [oid.int8, BigInt],
  [oid.int8Array, parseInt8Array],
  // pg would make the local midnight of it, which is another day elsewhere
  [oid.date, String],
  [oid.dateArray, pg.types.getTypeParser(oid.textArray)],
])

/**
 * How values arrive: `bigint` and `count(*)` as bigint, `numeric` and `date` as text, `timestamptz` as Date, JSON parsed.
 * For the clients it is given to only: the global parsers of `pg` belong to everybody.
 */
export const valueParsers = {
  getTypeParser: ((id: number, format?: "text" | "binary") =>
    (format !== "binary" && parsers.get(id)) ||
    pg.types.getTypeParser(id, format as "text")) as typeof pg.types.getTypeParser,
}
