import { isUtf8 } from "node:buffer"
import { Stream } from "effect"
import { LineBuffer } from "./line-buffer.ts"

/** One line of a JSONL file. Blank lines are counted, and left out. */
export interface RawLine {
  /** Counted from 1. */
  readonly line: number
  /** Offset of its first byte. */
  readonly offset: number
  /** Offset of the byte after its line end, where the next line begins. */
  readonly end: number
  /** Without its line end, and without the file's byte-order mark. Absent with a `problem`. */
  readonly text: string | undefined
  readonly problem?: "too_long" | "not_utf8"
}

export interface JsonLinesOptions {
  readonly maxLineBytes: number
  /** Number and offset of the first line in `bytes`; the start of the file by default. */
  readonly from?: { readonly line: number; readonly offset: number }
}

const newline = 0x0a
const carriageReturn = 0x0d
/** A byte-order mark and a carriage return don't count. */
const slackBytes = 4

const space = 0x20
const tab = 0x09

const blank = /^[ \t\r]*$/

const hasMark = (bytes: Buffer): boolean =>
  bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

const contentOf = (bytes: Buffer, isFirst: boolean): Buffer => {
  const from = isFirst && hasMark(bytes) ? 3 : 0
  const to = bytes.at(-1) === carriageReturn ? bytes.length - 1 : bytes.length
  return bytes.subarray(from, Math.max(from, to))
}

const makeSplitter = ({ maxLineBytes, from = { line: 1, offset: 0 } }: JsonLinesOptions) => {
  const begun = new LineBuffer(maxLineBytes + slackBytes)
  let line = from.line
  let offset = from.offset
  /** Offset of the end of the bytes seen so far. */
  let seen = from.offset

  const read = (bytes: Buffer | undefined): Pick<RawLine, "text" | "problem"> => {
    const content = bytes && contentOf(bytes, offset === 0)
    if (!content || content.length > maxLineBytes) return { text: undefined, problem: "too_long" }
    // a fatal TextDecoder takes several times as long
    return isUtf8(content)
      ? { text: content.toString("utf8") }
      : { text: undefined, problem: "not_utf8" }
  }

  const endAt = (end: number, bytes: Buffer | undefined): RawLine | undefined => {
    const found = { line, offset, end, ...read(bytes) }
    line += 1
    offset = end
    return found.text !== undefined && blank.test(found.text) ? undefined : found
  }

  /**
   * Skips blank lines fast, as a file of line ends has a hundred million of them. Returns the index
   * of the next line.
   */
  const behindBlank = (chunk: Buffer, from: number): number => {
    let start = from
    for (let at = from; at < chunk.length; at++) {
      const byte = chunk[at]
      if (byte === newline) {
        if (at - start > maxLineBytes) break
        line += 1
        offset += at + 1 - start
        start = at + 1
      } else if (byte !== space && byte !== tab && byte !== carriageReturn) break
    }
    return start
  }

  return {
    *push(bytes: Uint8Array): Generator<RawLine> {
      const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
      const base = seen
      seen += chunk.length
      let at = begun.isEmpty ? behindBlank(chunk, 0) : 0
      for (let next = chunk.indexOf(newline, at); next >= 0; next = chunk.indexOf(newline, at)) {
        const rest = chunk.subarray(at, next)
        at = next + 1
        if (!begun.isEmpty) begun.add(rest)
        const found = begun.isEmpty
          ? endAt(base + at, rest)
          : begun.take((whole) => endAt(base + at, whole))
        if (found) yield found
        at = behindBlank(chunk, at)
      }
      begun.add(chunk.subarray(at))
    },
    /** The last line needs no line end. */
    *end(): Generator<RawLine> {
      const found = begun.isEmpty ? undefined : begun.take((whole) => endAt(seen, whole))
      if (found) yield found
    },
  }
}

/** The lines of a JSONL file, with one in memory at a time; a line over the maximum is not kept. */
export const jsonLines = <E, R>(
  bytes: Stream.Stream<Uint8Array, E, R>,
  options: JsonLinesOptions,
): Stream.Stream<RawLine, E, R> =>
  Stream.suspend(() => {
    const splitter = makeSplitter(options)
    const last = Stream.suspend(() => Stream.fromIterable(splitter.end()))
    return Stream.concat(
      Stream.flatMap(bytes, (chunk) => Stream.fromIterable(splitter.push(chunk))),
      last,
    )
  })
