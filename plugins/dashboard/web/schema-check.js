import { Problem } from "./api.js"
import { lineAt, lineOfError, placesIn } from "./json-places.js"

/** The API has no report of what is no JSON Schema, but an error that names the place. */
const invalid = /no JSON Schema(?: at (\/.*?))?: ([\s\S]+)$/

const reportOf = (error) => {
  const [, path = "", reason] = invalid.exec(error.message) ?? []
  if (error.param !== "schema" || !reason) throw error
  const keyword = path.slice(path.lastIndexOf("/") + 1)
  return {
    accepted: false,
    isInvalid: true,
    keywords: [{ path, keyword, verdict: "refused", reason }],
  }
}

const schemaIn = (text) => {
  try {
    return JSON.parse(text)
  } catch (error) {
    const { message } = error
    throw Object.assign(new Problem({ code: "schema_not_json_at", param: "schema", message }), {
      line: lineOfError(text),
    })
  }
}

const withoutChecker = (error) =>
  error.code === "not_found" ? new Problem({ status: 404, code: "schema_checker_missing" }) : error

/**
 * What the server keeps of a schema: its report, and `isInvalid` where it is no JSON Schema. Throws a Problem: of the field
 * `schema`, with the `line`, where the text is no JSON.
 */
export const checkSchema = async (v1, text) => {
  const schema = schemaIn(text)
  return v1.post("/v1/schemas/check", { schema }).catch((error) => {
    if (!(error instanceof Problem)) throw error
    return reportOf(withoutChecker(error))
  })
}

/** What there is to say beside its place. */
export const remarks = ({ keywords }) =>
  keywords.filter(({ verdict, reason }) => verdict !== "enforced" || reason)

const linesAround = 3
const mostLines = 60

/** The lines of a schema with their remarks: `{ number, text, remarks }`; of a long one those around remarks. */
export const annotated = (text, found) => {
  const places = placesIn(text)
  const byLine = new Map()
  for (const one of found) {
    const line = lineAt(text, places.get(one.path) ?? 0)
    byLine.set(line, [...(byLine.get(line) ?? []), one])
  }
  const isNear = (number) =>
    [...byLine.keys()].some((line) => Math.abs(line - number) <= linesAround)
  const lines = text.split("\n").map((line, at) => ({
    number: at + 1,
    text: line,
    remarks: byLine.get(at + 1) ?? [],
  }))
  return lines.length <= mostLines ? lines : lines.filter(({ number }) => isNear(number))
}

const pretty = (schema) => JSON.stringify(schema, null, 2)

export const examples = {
  kept: pretty({
    type: "object",
    properties: {
      name: { type: "string", maxLength: 80 },
      born: { type: "string", format: "date" },
      languages: { type: "array", items: { enum: ["id", "en", "jv"] }, maxItems: 3 },
    },
    required: ["name", "born"],
    additionalProperties: false,
  }),
  refused: pretty({
    type: "object",
    properties: {
      order: { type: "integer", minimum: 1 },
      address: { $ref: "https://example.com/address.json" },
    },
    required: ["order", "address"],
  }),
}
