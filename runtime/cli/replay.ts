import { createPublicKey, verify } from "node:crypto"
import { readFileSync, statSync } from "node:fs"
import { Effect } from "effect"
import { type Caller, defaultLimits } from "../../core/caller.ts"
import { firstCharacters } from "../../core/characters.ts"
import { decodeBody } from "../../core/decode.ts"
import type { Json } from "../../core/json.ts"
import type { OfflineDeployment } from "../../core/ports/command.ts"
import type { Endpoint } from "../../core/ports/endpoint.ts"
import { openOffline } from "./offline.ts"

export interface ReplayOptions {
  readonly jwks?: string
  readonly json: boolean
}

type Fields = Readonly<Record<string, Json>>

/** What of a receipt is needed. */
interface Receipt {
  readonly endpoint: string
  readonly evidence: Fields
  readonly jws: string | undefined
}

/** 0: the same answer, 1: another one, 2: they can't be compared. */
type ExitCode = 0 | 1 | 2

/** What is known of the receipt's signature. */
type Signature = "valid" | "invalid" | "missing" | "not checked"

interface Report {
  readonly code: ExitCode
  readonly lines: readonly string[]
  readonly differences: readonly string[]
}

const isObject = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Room for the largest request, in text of any form. */
const maxBytes = 256 * 1024 * 1024

const readJson = (file: string): Fields => {
  let value: unknown
  try {
    if (statSync(file).size > maxBytes) throw new Error(`it is larger than ${maxBytes} bytes`)
    // a body may begin with a byte-order mark, as the server takes it
    value = JSON.parse(readFileSync(file, "utf8").replace(/^\uFEFF/, ""))
  } catch (cause) {
    throw new Error(`${file}: it can't be read as JSON (${(cause as Error).message})`)
  }
  if (!isObject(value)) throw new Error(`${file}: it is no JSON object`)
  return value
}

/** A part of a JWS. */
const decodedPart = (jws: string, index: number): Fields => {
  try {
    const part: unknown = JSON.parse(
      Buffer.from(jws.split(".")[index] ?? "", "base64url").toString(),
    )
    return isObject(part) ? part : {}
  } catch {
    return {}
  }
}

/** The reply of `GET /v1/receipts/{call_id}`, or the payload of its JWS. */
const receiptIn = (file: string): Receipt => {
  const found = readJson(file)
  const jws = typeof found.jws === "string" ? found.jws : undefined
  const payload = jws === undefined ? found : decodedPart(jws, 1)
  const { endpoint, evidence } = payload
  const isReceipt = jws === undefined || decodedPart(jws, 0).typ === "receipt+jws"
  const isWhole = jws === undefined || jws.split(".").length === 3
  if (typeof endpoint !== "string" || !isReceipt || !isWhole)
    throw new Error(`${file}: it is no receipt`)
  return { endpoint, evidence: isObject(evidence) ? evidence : {}, jws }
}

/** Whether one of the keys of a JWKS file signed the receipt. */
const signatureOf = ({ jws }: Receipt, jwksFile: string | undefined): Signature => {
  if (jwksFile === undefined) return "not checked"
  const { keys } = readJson(jwksFile)
  if (!Array.isArray(keys)) throw new Error(`${jwksFile}: it has no keys`)
  if (jws === undefined) return "missing"
  const [header = "", payload = "", signature = ""] = jws.split(".")
  const signed = Buffer.from(`${header}.${payload}`)
  const isSigned = keys.some((jwk) => {
    try {
      const key = createPublicKey({ key: jwk as never, format: "jwk" })
      return verify(null, signed, key, Buffer.from(signature, "base64url"))
    } catch {
      return false
    }
  })
  return isSigned ? "valid" : "invalid"
}

/** What is printed of a signature; an unsigned receipt proves nothing where a proof was wanted. */
const signatureLines: Readonly<Record<Signature, readonly string[]>> = {
  valid: [],
  invalid: ["the receipt is not signed by these keys"],
  missing: ["the receipt has no signature: save the whole reply of GET /v1/receipts/{call_id}"],
  "not checked": ["the receipt's signature was not checked (--jwks FILE checks it)"],
}

/** Runs nothing but this one call. */
const replayer: Caller = {
  tenant: { account: "replay", mode: "live" },
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
}

const plainly = <A>(effect: Effect.Effect<A, { readonly message: string }>, about = "") =>
  Effect.mapError(effect, ({ message }) => new Error(about + message))

/** What the API says of a wrong request, also of fields that a replay does not use. */
const refuseWrong = ({ body, refuses }: Endpoint, request: Fields) =>
  Effect.gen(function* () {
    const refusal = refuses?.(request)
    if (refusal) return yield* refusal
    if (typeof body !== "string") yield* decodeBody(body, request)
  })

const run = (
  { catalogue, callPath, openModels }: OfflineDeployment,
  endpoint: Endpoint,
  { stream: _, stream_options: __, ...request }: Fields,
  seed: Json,
  configFile: string,
) =>
  Effect.gen(function* () {
    const name = typeof request.model === "string" ? request.model : ""
    const entry = catalogue.entry(name)
    if (entry) yield* openModels([entry.id])
    // the API's refusal names what there is, not what was asked for, which may be a LoRA of then
    const about = entry ? "" : `${configFile} has no '${name}': `
    const { settlement } = yield* plainly(
      callPath.runUnsettled(endpoint, {
        caller: replayer,
        body: { ...request, ...(seed !== undefined && { seed }) },
        requestId: "replay",
        priority: "batch",
        priceFactor: 1,
      }),
      about,
    )
    return settlement.evidence ?? {}
  })

const names: Readonly<Record<string, string>> = {
  request: "the request",
  media: "the images, sounds or frames of videos that the model got",
  model: "the model's files, their precision or the graph",
  config: "the model's entry in the config file",
  max_tokens: "the most tokens of an answer, by the request, or the server's settings",
  date: "the day, which the prompt names",
  version: "the server's version",
  cpu: "the CPU",
  device: "the device",
}

const showing = (value: Json | undefined): string =>
  firstCharacters(
    typeof value === "string"
      ? value
      : value === undefined || value === null
        ? "none"
        : JSON.stringify(value),
    200,
  )

/** A receipt may come from anybody: it must not move the cursor of a terminal, or hide text. */
const visible = (text: string): string =>
  text.replace(/(?!\n)[\p{C}\p{Zl}\p{Zp}]/gu, (character) => {
    const digits = (character.codePointAt(0) ?? 0).toString(16)
    return `\\u{${digits}}`
  })

/** What receipts of before don't name. */
const newer: readonly string[] = ["media", "max_tokens"]

/** Compares what the receipt has with what was found now. */
export const compared = (evidence: Fields, now: Fields): Report => {
  const differences = Object.keys(names).filter(
    (key) => evidence[key] !== now[key] && !(newer.includes(key) && evidence[key] === undefined),
  )
  const lines = differences.map(
    (key) => `${names[key]}: ${showing(evidence[key])} then, ${showing(now[key])} now`,
  )
  if (evidence.model === null || now.model === null)
    return {
      code: 2,
      lines: [...lines, "not replayable: this model's answers depend on what else runs"],
      differences,
    }
  if (["request", "media", "model", "date"].some((key) => differences.includes(key)))
    return { code: 2, lines: [...lines, "not comparable"], differences }
  const same = evidence.answer === now.answer
  if (!same && evidence.seed === undefined && now.seed !== undefined)
    return {
      code: 2,
      lines: [
        ...lines,
        "not replayable: the receipt names no seed, and this answer was drawn by another one",
      ],
      differences,
    }
  return { code: same ? 0 : 1, lines: [...lines, same ? "equal" : "different"], differences }
}

const notComparable = (lines: readonly string[], differences: readonly string[] = []): Report => ({
  code: 2,
  lines,
  differences,
})

/**
 * Whether a request names another seed than the receipt. One for a picture leaves it to the server
 * by -1; where the receipt names none, it may be a field that the endpoint ignores.
 */
const isOtherSeed = ({ endpoint, evidence }: Receipt, { seed }: Fields): boolean =>
  seed != null &&
  evidence.seed !== undefined &&
  seed !== evidence.seed &&
  !(seed === -1 && endpoint.startsWith("images."))

/** Why the receipt alone tells that the call can't be run again. */
const obstacleIn = ({ answer, seed, model, served_by }: Fields): string | undefined => {
  if (typeof answer !== "string") return "the receipt names no answer"
  if (seed !== undefined && typeof seed !== "number") return "the receipt's seed is no number"
  if (served_by === undefined) return undefined
  return model === undefined
    ? "another server computed the answer"
    : `another model answered in this one's place, ${showing(served_by)}`
}

const report = (receipt: Receipt, request: Fields, configFile: string) =>
  Effect.gen(function* () {
    const { evidence } = receipt
    const obstacle = obstacleIn(evidence)
    if (obstacle !== undefined) return notComparable([`not replayable: ${obstacle}`])
    const write = (lines: string) => void process.stderr.write(lines)
    const deployment = yield* openOffline(configFile, write)
    const endpoint = deployment.endpoints.find(({ id }) => id === receipt.endpoint)
    if (!endpoint?.batchable)
      return yield* Effect.fail(new Error(`Calls of '${receipt.endpoint}' can't be run again.`))
    yield* plainly(refuseWrong(endpoint, request))
    if (isOtherSeed(receipt, request))
      return notComparable(
        [
          `the seed: ${showing(evidence.seed)} then, ${showing(request.seed)} now`,
          "not comparable",
        ],
        ["seed"],
      )
    return compared(evidence, yield* run(deployment, endpoint, request, evidence.seed, configFile))
  })

/** Runs a call again by its receipt. Exits with 0 (equal), 1 (different) or 2 (not comparable). */
export const replay = async (
  receiptFile: string,
  requestFile: string,
  configFile: string,
  options: ReplayOptions,
): Promise<void> => {
  try {
    const receipt = receiptIn(receiptFile)
    const request = readJson(requestFile)
    const signature = signatureOf(receipt, options.jwks)
    const isRefused = signature === "invalid" || signature === "missing"
    const { code, lines, differences } = isRefused
      ? notComparable(["not comparable"])
      : await Effect.runPromise(Effect.scoped(report(receipt, request, configFile)))
    const result = ["equal", "different", "not comparable"][code]
    const text = options.json
      ? JSON.stringify({ result, differences, signature })
      : visible([...signatureLines[signature], ...lines].join("\n"))
    process.stdout.write(`${text}\n`)
    process.exitCode = code
  } catch (error) {
    process.stderr.write(`${visible(error instanceof Error ? error.message : String(error))}\n`)
    process.exitCode = 2
  }
}
