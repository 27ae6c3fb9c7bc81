import { type BatchErrorCode, isLongerThan, type Json } from "../../../core/index.ts"
import type { BatchError } from "../tables.ts"
import { jsonFault } from "./json-fault.ts"
import type { RawLine } from "./json-lines.ts"
import { excessOf } from "./json-size.ts"

/** A line of the right shape; its `body` is not checked yet. */
export interface InputLine {
  readonly customId: string
  readonly body: Json
}

const maxIdCharacters = 256
/** Where a longer line stops being JSON is not searched: that takes long. */
const maxSearched = 64 * 1024

type Fault = Pick<BatchError, "code" | "message" | "param">

const fault = (code: BatchErrorCode, message: string, param: string | null = null): Fault => ({
  code,
  message,
  param,
})
const wrong = (param: string, message: string): Fault =>
  fault("invalid_request_error", `${param}: ${message}`, param)

const problems: Readonly<Record<NonNullable<RawLine["problem"]>, Fault>> = {
  too_long: fault("line_too_long", "The line is longer than a line may be."),
  not_utf8: fault("invalid_utf8", "The line is not valid UTF-8."),
}

const isObject = (json: Json): json is Readonly<Record<string, Json>> =>
  typeof json === "object" && json !== null && !Array.isArray(json)

const own = (object: Readonly<Record<string, Json>>, key: string): Json =>
  Object.hasOwn(object, key) ? (object[key] ?? undefined) : undefined

const idFault = (id: Json): Fault | undefined => {
  if (id === undefined) return wrong("custom_id", "is missing")
  if (typeof id !== "string") return wrong("custom_id", "must be a string")
  if (id === "") return wrong("custom_id", "must not be empty")
  return isLongerThan(id, maxIdCharacters)
    ? wrong("custom_id", `must have at most ${maxIdCharacters} characters`)
    : undefined
}

const methodFault = (method: Json): Fault | undefined => {
  if (method === undefined) return wrong("method", "is missing; it must be 'POST'")
  return method === "POST" ? undefined : wrong("method", "must be 'POST'")
}

const urlFault = (url: Json, endpoint: string): Fault | undefined => {
  if (url === undefined) return wrong("url", `is missing; it must be '${endpoint}'`)
  if (typeof url !== "string") return wrong("url", "must be a string")
  return url === endpoint
    ? undefined
    : fault("mismatched_endpoint", `url: must be the batch's endpoint, '${endpoint}'`, "url")
}

const bodyFault = (body: Json): Fault | undefined => {
  if (body === undefined) return wrong("body", "is missing")
  return isObject(body) ? undefined : wrong("body", "must be an object")
}

const parse = (text: string): { readonly json: Json } | Fault => {
  const excess = excessOf(text)
  if (excess !== undefined) return fault("invalid_request_error", `The line ${excess}.`)
  try {
    return { json: JSON.parse(text) as Json }
  } catch {
    if (text.length > maxSearched) return fault("invalid_json", "The line is not valid JSON.")
    const at = jsonFault(text) ?? 0
    return fault(
      "invalid_json",
      at >= text.length
        ? "The line is not valid JSON: it ends too early."
        : `The line is not valid JSON at character ${at + 1}.`,
    )
  }
}

const read = ({ text, problem }: RawLine, endpoint: string): InputLine | Fault => {
  if (text === undefined) return problems[problem ?? "not_utf8"]
  const parsed = parse(text)
  if (!("json" in parsed)) return parsed
  const { json } = parsed
  if (!isObject(json)) return fault("invalid_request_error", "The line must be a JSON object.")
  const id = own(json, "custom_id")
  const body = own(json, "body")
  return (
    idFault(id) ??
    methodFault(own(json, "method")) ??
    urlFault(own(json, "url"), endpoint) ??
    bodyFault(body) ?? { customId: id as string, body }
  )
}

/**
 * Parses a line. Returns the first error where it can't run. `endpoint`: the path of the batch, as
 * `/v1/embeddings`.
 */
export const readInputLine = (raw: RawLine, endpoint: string): InputLine | BatchError => {
  const found = read(raw, endpoint)
  return "code" in found ? { ...found, line: raw.line } : found
}

export const isBatchError = (found: InputLine | BatchError): found is BatchError => "code" in found
