import { createPublicKey, verify } from "node:crypto"
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { type Caller, defaultLimits } from "../../core/caller.ts"
import type { Json } from "../../core/json.ts"
import type { OfflineDeployment } from "../../core/ports/command.ts"
import { makeLog } from "../services/log.ts"
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

interface Report {
  readonly code: ExitCode
  readonly lines: readonly string[]
  readonly differences: readonly string[]
}

const readJson = (file: string): Fields => {
  try {
    return JSON.parse(readFileSync(file, "utf8")) as Fields
  } catch (cause) {
    throw new Error(`${file}: it can't be read as JSON (${(cause as Error).message})`)
  }
}

/** The reply of `GET /v1/receipts/{call_id}`, or the payload of its JWS. */
const receiptIn = (file: string): Receipt => {
  const found = readJson(file)
  const jws = typeof found.jws === "string" ? found.jws : undefined
  const part = (index: number) =>
    JSON.parse(Buffer.from(jws!.split(".")[index] ?? "", "base64url").toString()) as Fields
  const payload = jws === undefined ? found : part(1)
  const { endpoint, evidence } = payload
  if (typeof endpoint !== "string") throw new Error(`${file}: it is no receipt`)
  return { endpoint, evidence: (evidence ?? {}) as Fields, jws }
}

/** Whether one of the keys of a JWKS file signed it. */
const isSigned = (jws: string, jwksFile: string): boolean => {
  const { keys = [] } = readJson(jwksFile) as { readonly keys?: readonly Fields[] }
  const [header = "", payload = "", signature = ""] = jws.split(".")
  const signed = Buffer.from(`${header}.${payload}`)
  return keys.some((jwk) => {
    try {
      const key = createPublicKey({ key: jwk as never, format: "jwk" })
      return verify(null, signed, key, Buffer.from(signature, "base64url"))
    } catch {
      return false
    }
  })
}

/** Runs nothing but this one call. */
const replayer: Caller = {
  tenant: { account: "replay", mode: "live" },
  scopes: ["*"],
  role: "user",
  limits: defaultLimits,
}

const run = (
  { endpoints, catalogue, callPath, openModels }: OfflineDeployment,
  { endpoint: id, evidence }: Receipt,
  { stream: _, stream_options: __, ...request }: Fields,
) =>
  Effect.gen(function* () {
    const endpoint = endpoints.find((one) => one.id === id)
    if (!endpoint?.batchable)
      return yield* Effect.fail(new Error(`Calls of '${id}' can't be run again.`))
    const name = typeof request.model === "string" ? request.model : ""
    const entry = catalogue.entries.find((one) => one.id === name || name.startsWith(`${one.id}:`))
    if (entry) yield* openModels([entry.id])
    const seed = evidence.seed ?? null
    const { settlement } = yield* Effect.mapError(
      callPath.runUnsettled(endpoint, {
        caller: replayer,
        body: { ...request, ...(seed !== null && { seed }) },
        requestId: "replay",
        priority: "batch",
        priceFactor: 1,
      }),
      (error) => new Error(error.message),
    )
    return settlement.evidence ?? {}
  })

const names: Readonly<Record<string, string>> = {
  request: "the request",
  model: "the model's files, their precision or the graph",
  config: "the model's entry in the config file",
  version: "the server's version",
  cpu: "the CPU",
}

const showing = (value: Json | undefined): string => String(value ?? "none")

/** Compares what the receipt has with what was found now. */
export const compared = (evidence: Fields, now: Fields): Report => {
  const differences = Object.keys(names).filter((key) => evidence[key] !== now[key])
  const lines = differences.map(
    (key) => `${names[key]}: ${showing(evidence[key])} then, ${showing(now[key])} now`,
  )
  if (evidence.model === null || now.model === null)
    return {
      code: 2,
      lines: [...lines, "not replayable: this model's answers depend on what else runs"],
      differences,
    }
  if (differences.includes("request") || differences.includes("model"))
    return { code: 2, lines: [...lines, "not comparable"], differences }
  const same = evidence.answer === now.answer
  return { code: same ? 0 : 1, lines: [...lines, same ? "equal" : "different"], differences }
}

const report = (
  receiptFile: string,
  requestFile: string,
  configFile: string,
  { jwks }: ReplayOptions,
) =>
  Effect.gen(function* () {
    const receipt = receiptIn(receiptFile)
    const { evidence, jws } = receipt
    if (jws !== undefined && jwks !== undefined && !isSigned(jws, jwks))
      return {
        code: 2,
        lines: ["the receipt is not signed by these keys"],
        differences: [],
      } as Report
    const request = readJson(requestFile)
    if (evidence.answer === undefined)
      return {
        code: 2,
        lines: ["not replayable: the receipt names no answer"],
        differences: [],
      } as Report
    if (request.seed != null && request.seed !== evidence.seed)
      return {
        code: 2,
        lines: [
          `the seed: ${showing(evidence.seed)} then, ${showing(request.seed)} now`,
          "not comparable",
        ],
        differences: ["seed"],
      } as Report
    const log = makeLog({ level: "warn", destination: process.stderr })
    const deployment = yield* openOffline(configFile, log)
    return compared(evidence, yield* run(deployment, receipt, request))
  })

/** Runs a call again by its receipt. Exits with 0 (equal), 1 (different) or 2 (not comparable). */
export const replay = async (
  receiptFile: string,
  requestFile: string,
  configFile: string,
  options: ReplayOptions,
): Promise<void> => {
  try {
    const { code, lines, differences } = await Effect.runPromise(
      Effect.scoped(Effect.suspend(() => report(receiptFile, requestFile, configFile, options))),
    )
    const result = { result: ["equal", "different", "not comparable"][code], differences }
    process.stdout.write(`${options.json ? JSON.stringify(result) : lines.join("\n")}\n`)
    process.exitCode = code
  } catch (error) {
    process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`)
    process.exitCode = 2
  }
}
