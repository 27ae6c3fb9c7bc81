import { Effect } from "effect"
import fc from "fast-check"
import { sql } from "kysely"
import { expect } from "vitest"
import type { Database } from "../../../core/ports/database.ts"
import type { DatabaseCases } from "../database.ts"

const int8 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })

const one = async (database: Database, query: ReturnType<typeof sql>): Promise<unknown> => {
  const { rows } = await query.execute(database.queries())
  return (rows[0] as { readonly v: unknown }).v
}

const asks =
  (question: ReturnType<typeof sql>, answer: unknown) =>
  (opened: { readonly database: Database }) =>
    opened.database
      .run(() => one(opened.database, question))
      .pipe(Effect.map((value) => expect(value).toEqual(answer)))

export const valueCases: DatabaseCases = {
  "bigint goes and comes exactly": ({ database }) =>
    Effect.promise(() =>
      fc.assert(
        fc.asyncProperty(int8, fc.array(int8, { maxLength: 5 }), async (n, list) => {
          expect(await one(database, sql`select ${n}::int8 as v`)).toBe(n)
          expect(await one(database, sql`select ${list}::int8[] as v`)).toEqual(list)
        }),
        { numRuns: 50 },
      ),
    ),
  "count(*) is a bigint": asks(sql`select count(*) as v from generate_series(1, 3)`, 3n),
  "an array of bigint may hold null": asks(sql`select array[1, null]::int8[] as v`, [1n, null]),
  "numeric stays text, digit by digit": asks(
    sql`select 0.10::numeric(20, 10) as v`,
    "0.1000000000",
  ),
  "a date is a day and no moment": asks(sql`select '2026-01-31'::date as v`, "2026-01-31"),
  "a timestamptz is a Date": asks(
    sql`select ${new Date(1_767_225_600_000)}::timestamptz as v`,
    new Date("2026-01-01T00:00:00Z"),
  ),
  "days begin at midnight in UTC": asks(
    sql`select array_agg(moment::date order by moment) as v from unnest(${["2026-01-31T00:30:00Z", "2026-01-31T23:30:00Z"]}::timestamptz[]) as moment`,
    ["2026-01-31", "2026-01-31"],
  ),
  "bytes come back": asks(
    sql`select ${Buffer.from([0, 255, 10])}::bytea as v`,
    Buffer.from([0, 255, 10]),
  ),
  "JSON comes parsed": asks(sql`select ${JSON.stringify({ a: [1, "é"] })}::jsonb as v`, {
    a: [1, "é"],
  }),
}
