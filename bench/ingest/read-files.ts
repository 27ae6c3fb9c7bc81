import { createReadStream } from "node:fs"
import { Effect, Stream } from "effect"
import type { Log } from "../../core/index.ts"
import type { DocumentReader } from "../../plugins/endpoint-retrieval/reading/document-reader.ts"
import { popplerText, wordRecall } from "./word-recall.ts"

export interface Reading {
  readonly file: string
  readonly ms: number
  readonly pages: number
  /** `processed`, the code of a failure, or `crashed`. */
  readonly end: string
  readonly text: string
}

/** A parser that failed in an unforeseen way only says so in the log. */
export const countingLog = (): { readonly log: Log; readonly lines: string[] } => {
  const lines: string[] = []
  const note = (event: string, _: string, fields?: object) =>
    void lines.push(`${event} ${JSON.stringify(fields ?? {})}`)
  const log: Log = { debug: () => {}, info: () => {}, warn: note, error: note, with: () => log }
  return { log, lines }
}

/** Reads a file as ingest does. The text is put together again from the chunks. */
export const readFile = async (reader: DocumentReader, file: string): Promise<Reading> => {
  const startMs = performance.now()
  let [pages, at] = [0, 0]
  const parts: string[] = []
  const bytes = Stream.fromAsyncIterable(createReadStream(file), (cause) => cause as never)
  const read = reader.read("pdf", bytes).pipe(
    Stream.runForEach((batch) =>
      Effect.sync(() => {
        pages = batch.pages ?? pages
        for (const { text, start, end } of batch.chunks)
          if (end > at) {
            parts.push(start >= at ? text : [...text].slice(at - start).join(""))
            at = end
          }
      }),
    ),
    Effect.as("processed"),
    Effect.catch((error) =>
      Effect.succeed(error._tag === "IngestFailure" ? error.code : `crashed: ${error.message}`),
    ),
  )
  const end = await Effect.runPromise(read)
  return { file, pages, end, ms: performance.now() - startMs, text: parts.join("\n") }
}

export interface Compared extends Omit<Reading, "text"> {
  /** Share of pdftotext's words; NaN without one of the texts. */
  readonly recall: number
  /** Whether pdftotext finds text. */
  readonly hasText: boolean
  readonly popplerMs: number
}

/** Puts pdftotext's text beside it, where that program finds some. */
export const compare = async (
  { text, ...reading }: Reading,
  poppler: boolean,
): Promise<Compared> => {
  const startMs = performance.now()
  const reference = poppler ? await popplerText(reading.file) : undefined
  const popplerMs = performance.now() - startMs
  const recall =
    reference !== undefined && reading.end === "processed"
      ? wordRecall(reference, text)
      : Number.NaN
  return { ...reading, recall, hasText: reference !== undefined, popplerMs }
}
