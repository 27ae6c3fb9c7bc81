import { isUtf8 } from "node:buffer"
import { createHash, type Hash, randomBytes } from "node:crypto"
import { Effect } from "effect"
import { type ApiError, apiError } from "../../../core/errors.ts"
import type { Json } from "../../../core/json.ts"
import type { Endpoint, JsonBounds } from "../../../core/ports/endpoint.ts"
import { smallBodyBytes } from "./body-budget.ts"
import { JsonScan } from "./json-scan.ts"

/** Parsing and decoding more than this takes a turn of its own. */
const fewValues = 4_000

/** Length of the bytes without a character of UTF-8 that is cut at their end. */
const wholeCharacters = (bytes: Buffer): number => {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back]!
    if (byte < 0x80) return bytes.length
    if (byte < 0xc0) continue
    const width = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2
    return width > back ? bytes.length - back : bytes.length
  }
  return bytes.length
}

/** Length of the text without an escape (`\n`, `\u00e9`) that is cut at its end. */
const wholeEscapes = (text: string): number => {
  const last = text.slice(-6).lastIndexOf("\\")
  if (last < 0) return text.length
  const at = Math.max(0, text.length - 6) + last
  let slashes = 1
  while (text[at - slashes] === "\\") slashes++
  if (slashes % 2 === 0) return text.length
  return at + (text[at + 1] === "u" ? 6 : 2) <= text.length ? text.length : at
}

export interface JsonLimits {
  readonly bounds: JsonBounds
  readonly maxTextBytes: number
  readonly tooMuchText: () => ApiError
  /** Whether `digest` is wanted. */
  readonly hashes: boolean
}

const invalid = (message?: string) => apiError("invalid_json", message)

/**
 * Reads a JSON body while it arrives: checks UTF-8 and bounds piece by piece, so that what is
 * refused was never parsed. The inner pieces of long strings are set aside, with a mark in their
 * place, and come back as ropes: what `JSON.parse` gets is short.
 */
export class JsonReader {
  #bytes = 0
  #restOfBytes: Buffer = Buffer.alloc(0)
  #restOfText = ""
  #text = ""
  readonly #aside: string[] = []
  #wasAside = false
  /** No client can guess it. */
  #mark = ""
  #hasBegun = false
  readonly #scan: JsonScan
  readonly #hash: Hash | undefined
  readonly #limits: JsonLimits

  constructor(limits: JsonLimits) {
    this.#limits = limits
    this.#scan = new JsonScan(limits.bounds)
    this.#hash = limits.hashes ? createHash("sha256") : undefined
  }

  /** Whether parsing it takes long. */
  get isLarge(): boolean {
    const { keys, values, elements } = this.#scan
    return this.#bytes > smallBodyBytes || keys + values + elements > fewValues
  }

  /** SHA-256 of a large body. */
  digest(): string | undefined {
    return this.isLarge ? this.#hash?.digest("base64") : undefined
  }

  /** Returns what is wrong. */
  push(bytes: Buffer): ApiError | undefined {
    this.#bytes += bytes.length
    this.#hash?.update(bytes)
    const joined = this.#restOfBytes.length ? Buffer.concat([this.#restOfBytes, bytes]) : bytes
    const whole = joined.subarray(0, wholeCharacters(joined))
    this.#restOfBytes = joined.subarray(whole.length)
    // a fatal TextDecoder takes several times as long
    if (!isUtf8(whole)) return invalid("The body is not valid UTF-8.")
    const from = !this.#hasBegun && hasMark(whole) ? 3 : 0
    this.#hasBegun ||= whole.length > 0
    return this.#pushText(whole.toString("utf8", from))
  }

  #pushText(piece: string): ApiError | undefined {
    const scan = this.#scan
    const joined = this.#restOfText + piece
    const text = joined.slice(0, wholeEscapes(joined))
    this.#restOfText = joined.slice(text.length)
    const { inString, values } = scan
    scan.push(text)
    if (scan.excess) return apiError("invalid_request_error", `The body ${scan.excess}.`)
    if (this.#bytes - scan.mediaCharacters > this.#limits.maxTextBytes)
      return this.#limits.tooMuchText()
    const isInner = inString && scan.inString && values === scan.values
    if (isInner && this.#bytes > smallBodyBytes) return this.#setAside(text)
    this.#wasAside = false
    this.#text += text
    return undefined
  }

  #setAside(text: string): ApiError | undefined {
    const piece = parsed(`"${text}"`) as string | undefined
    if (piece === undefined) return invalid()
    this.#mark ||= `@${randomBytes(12).toString("hex")}:`
    if (!this.#wasAside) this.#text += `${this.#mark}${this.#aside.push("") - 1};`
    this.#aside[this.#aside.length - 1] += piece
    this.#wasAside = true
    return undefined
  }

  /** The JSON value; call it once, after all bytes. */
  readonly end: Effect.Effect<Json, ApiError> = Effect.suspend(() => {
    if (this.#bytes === 0)
      return Effect.fail(invalid("The body is empty; a JSON object is expected."))
    if (this.#restOfBytes.length) return Effect.fail(invalid("The body is not valid UTF-8."))
    const value = parsed(this.#text + this.#restOfText)
    this.#text = ""
    if (value === undefined) return Effect.fail(invalid())
    if (this.#aside.length === 0) return Effect.succeed(value)
    const whole = { value }
    const isFine = this.#restore(whole)
    return isFine
      ? Effect.succeed(whole.value)
      : Effect.fail(apiError("invalid_request_error", "A key of the body is too long."))
  })

  /** Puts back what was set aside; false: it belongs to a key. */
  #restore(parent: object): boolean {
    return Object.entries(parent).every(([key, child]) => {
      if (key.includes(this.#mark)) return false
      if (typeof child === "string" && child.includes(this.#mark))
        // an assignment to `__proto__` would change the prototype
        Object.defineProperty(parent, key, { value: this.#joined(child) })
      return typeof child !== "object" || child === null || this.#restore(child)
    })
  }

  /** A rope: joining the pieces would copy them. */
  #joined(text: string): string {
    const [first = "", ...others] = text.split(this.#mark)
    return others.reduce((whole, part) => {
      const end = part.indexOf(";")
      return whole + this.#aside[Number(part.slice(0, end))]! + part.slice(end + 1)
    }, first)
  }
}

const hasMark = (bytes: Buffer) => bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf

/** JSON has no `undefined`: that is invalid text. V8's message quotes it, and must not be logged. */
const parsed = (text: string): Json => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const jsonType = /^(application\/json|[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.+-]+\+json)$/
const charset = /;\s*charset\s*=\s*"?([^\s;"]+)"?/

/** JSON endpoints take `application/json`, `anything/...+json` or no type at all, in UTF-8. */
export const requireJsonType = (
  contentType: string | undefined,
  { readForm }: Pick<Endpoint, "readForm">,
): Effect.Effect<void, ApiError> => {
  if (contentType === undefined || contentType === "") return Effect.void
  const lower = contentType.toLowerCase()
  const type = lower.split(";", 1)[0]!.trim()
  const coding = charset.exec(lower)?.[1] ?? "utf-8"
  if (jsonType.test(type) && (coding === "utf-8" || coding === "utf8" || coding === "us-ascii"))
    return Effect.void
  const others = readForm ? ", or multipart/form-data" : ""
  return Effect.fail(
    apiError("unsupported_media_type", `The body must be application/json in UTF-8${others}.`),
  )
}
