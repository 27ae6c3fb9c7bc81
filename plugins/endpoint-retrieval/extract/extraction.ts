import { Data, type Effect, type Stream } from "effect"
import type { PortError } from "../../../core/index.ts"

/** The kinds of knowledge files, by the ends of their names. */
export const kinds = ["pdf", "txt", "md", "html", "docx", "csv"] as const
export type Kind = (typeof kinds)[number]

/** A page of a PDF, or a part of a text without pages, in order. */
export interface ExtractedPart {
  /** From 1 on; absent in formats without pages. */
  readonly page?: number
  /** With its `[Page N]` mark. The parts of a file joined are its extracted text. */
  readonly text: string
}

export type FailureCode =
  | "encrypted"
  | "no_text"
  | "empty"
  | "broken"
  | "too_large"
  | "too_slow"
  | "insufficient_quota"
  | "internal"

/** The file's own fault: trying again does not help. The message is for the customer. */
export class IngestFailure extends Data.TaggedError("IngestFailure")<{
  readonly code: FailureCode
  readonly message: string
}> {}

export interface Extractor {
  /** The text of a file, part by part; the next is read when the last was taken. */
  extract(
    kind: Kind,
    bytes: Stream.Stream<Uint8Array, PortError>,
  ): Stream.Stream<ExtractedPart, IngestFailure | PortError>
}

/** Splits extracted text into chunks, with what it needs of the text before. */
export interface Chunk {
  readonly index: number
  readonly text: string
  /** The page it begins on. */
  readonly page?: number
  /** Characters (code points) of the extracted text, the end exclusive. */
  readonly start: number
  readonly end: number
}

export interface Splitter {
  split<E>(
    parts: Stream.Stream<ExtractedPart, E>,
  ): Stream.Stream<Chunk, E | IngestFailure | PortError>
}

export type Ingested = Effect.Effect<void, IngestFailure | PortError>
