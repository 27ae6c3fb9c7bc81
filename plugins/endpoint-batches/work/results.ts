import { Effect, Option, Stream } from "effect"
import type { PortError, StorageError } from "../../../core/index.ts"
import type { BatchDeps } from "../deps.ts"
import type { BatchTables, PartTable } from "../tables.ts"

export type Kind = PartTable["kind"]

/** Bytes of answers in memory at once. */
const pageBytes = 1_048_576

interface LineAt {
  readonly line: number
  readonly bytes: number
}

const lines = ({ database }: BatchDeps, batch: string, kind: Kind) =>
  database
    .queries<BatchTables>()
    .selectFrom("batches_line")
    .where("batch_id", "=", batch)
    .where("ok", "=", kind === "output")

/** First and last line of pages of about `pageBytes`; a larger line has a page of its own. */
const pagesOf = (all: readonly LineAt[]): readonly (readonly [number, number])[] => {
  const pages: [number, number][] = []
  let size = Number.POSITIVE_INFINITY
  for (const { line, bytes } of all) {
    const last = pages.at(-1)
    if (last && size + bytes <= pageBytes) last[1] = line
    else pages.push([line, line])
    size = last && size + bytes <= pageBytes ? size + bytes : bytes
  }
  return pages
}

const encoded = (bodies: readonly { readonly body: string }[]): Uint8Array =>
  Buffer.from(bodies.map(({ body }) => `${body}\n`).join(""))

/** Lines up to `through` that are in no segment, in order, as bytes of their file. */
export const lineBytes = (
  deps: BatchDeps,
  batch: string,
  kind: Kind,
  through: number = 2 ** 31 - 1,
): Stream.Stream<Uint8Array, PortError> => {
  const all = deps.database.run(() =>
    lines(deps, batch, kind)
      .select(["line", (eb) => eb.fn<number>("octet_length", ["body"]).as("bytes")])
      .where("line", "<=", through)
      .orderBy("line")
      .execute(),
  )
  const page = ([from, to]: readonly [number, number]) =>
    Effect.map(
      deps.database.run(() =>
        lines(deps, batch, kind)
          .select("body")
          .where("line", ">=", from)
          .where("line", "<=", to)
          .orderBy("line")
          .execute(),
      ),
      encoded,
    )
  return Stream.unwrap(
    Effect.map(all, (found) => Stream.mapEffect(Stream.fromIterable(pagesOf(found)), page)),
  )
}

/** The segments one after the other: each is looked up when the one before it has been read. */
const segmentBytes = (
  deps: BatchDeps,
  batch: string,
  kind: Kind,
): Stream.Stream<Uint8Array, StorageError> => {
  const after = (part: number) =>
    deps.database.run(() =>
      deps.database
        .queries<BatchTables>()
        .selectFrom("batches_part")
        .selectAll()
        .where("batch_id", "=", batch)
        .where("kind", "=", kind)
        .where("part", ">", part)
        .orderBy("part")
        .limit(1)
        .executeTakeFirst(),
    )
  const keys = Stream.paginate(-1, (last: number) =>
    Effect.map(
      after(last),
      (row) =>
        [row ? [row.blob_key] : [], row ? Option.some(row.part) : Option.none<number>()] as const,
    ),
  )
  return Stream.flatMap(keys, (key) => deps.storage.get(key))
}

/** The whole output or error file, in the order of the input. */
export const resultBytes = (
  deps: BatchDeps,
  batch: string,
  kind: Kind,
): Stream.Stream<Uint8Array, StorageError> =>
  Stream.concat(segmentBytes(deps, batch, kind), lineBytes(deps, batch, kind))

/** Lines after the last segment that have an answer, with its bytes. */
export const answeredLines = (
  { database }: BatchDeps,
  batch: string,
): Effect.Effect<ReadonlyMap<number, number>, PortError> =>
  Effect.map(
    database.run(() =>
      database
        .queries<BatchTables>()
        .selectFrom("batches_line")
        .select(["line", (eb) => eb.fn<number>("octet_length", ["body"]).as("bytes")])
        .where("batch_id", "=", batch)
        .execute(),
    ),
    (rows) => new Map(rows.map(({ line, bytes }) => [line, bytes])),
  )
