import { randomUUID } from "node:crypto"
import { Effect, Stream } from "effect"
import {
  type AdmitRequest,
  type Caller,
  costOf,
  defaultLimits,
  type Endpoint,
  type Migrations,
  parsePrice,
  priceTag,
  type Settlement,
  type Usage,
  usageOf,
  uuidV7,
} from "../../../core/index.ts"
import { callPathFixture, fakeMetrics, fakeSigner } from "../../../testing/index.ts"
import type { TestDatabase } from "../../../testing/postgres.ts"
import { makeLedgerBilling } from "../ledger-billing.ts"
import { migrations } from "../migrations.ts"

/** One or two rupiah for a token, so that costs are easy to read. */
const perToken = parsePrice({ input: 1_000_000, output: 2_000_000 })

export interface Spent {
  readonly account?: string
  readonly key?: string
  readonly mode?: "live" | "test"
  readonly model?: string
  readonly endpoint?: string
  readonly requestId?: string
  readonly usage?: Partial<Usage>
  readonly outcome?: Settlement["outcome"]
  readonly status?: number
  readonly counts?: AdmitRequest["counts"]
  /** The batch that it is a line of. */
  readonly parent?: string
  readonly timing?: Settlement["timing"]
  readonly failure?: Settlement["failure"]
}

/** The real ledger on a real database, with its endpoints behind the real call path. */
export const openTestLedger = async (
  { database }: TestDatabase,
  migrationsToRun: Migrations = migrations,
) => {
  await Effect.runPromise(database.migrate("billing-ledger", migrationsToRun))
  const deps = callPathFixture()
  const { clock, log } = deps
  const settings = { maxGathered: 128, maxInFlight: 2, maxWaiting: 10_000 }
  const billing = makeLedgerBilling({
    database,
    clock,
    log,
    metrics: fakeMetrics(),
    settings,
    replica: randomUUID(),
  })
  const signer = fakeSigner()
  const deployment = {
    name: "test",
    dataDir: "/nonexistent",
    modelsDir: "/nonexistent",
    baseUrl: "https://api.example.com",
    mode: "server" as const,
  }
  const started = Effect.succeed({
    ...{ database, clock, log, signer, deployment },
    flushRefused: billing.flushRefused,
    drained: Effect.void,
  })

  const limits = {
    ...defaultLimits,
    rpm: 1_000_000,
    rpd: 1_000_000,
    concurrency: 100_000,
    monthlyCapMicros: 0n,
  }
  const session = (account: string, role: Caller["role"] = "user"): Caller => ({
    tenant: { account, mode: "live" },
    scopes: [],
    role,
    limits,
  })

  const admit = async ({
    account = "acct_1",
    key = "key_1",
    mode = "live",
    model = "m",
    endpoint = "chat.completions",
    requestId = "req_1",
    counts = "all",
    parent,
  }: Spent = {}) => {
    const id = uuidV7(clock.nowMs())
    const caller = {
      ...session(account),
      tenant: { account, mode },
      ...(key !== "" && { keyId: key }),
    }
    const priced = {
      model: model === "" ? undefined : model,
      prices: priceTag(() => perToken, model === "" ? [] : [model], mode === "test" ? 0 : 1),
    }
    await Effect.runPromise(
      billing.admit({
        id,
        caller,
        endpoint,
        requestId,
        holdMicros: 1_000_000_000n,
        counts,
        ...(parent !== undefined && { parent }),
        ...priced,
      }),
    )
    return id
  }
  const settle = async (
    id: string,
    {
      model = "m",
      mode,
      usage = { inputTokens: 2, outputTokens: 1 },
      outcome = "settled",
      status = 200,
      timing,
      failure,
    }: Spent = {},
  ) => {
    const used = { [model]: usageOf(usage) }
    const costMicros = costOf(() => perToken, used, mode === "test" ? 0 : 1)
    const outcomes = { ...(timing !== undefined && { timing }), ...(failure && { failure }) }
    await Effect.runPromise(
      billing.settle([{ id, outcome, costMicros, usage: used, httpStatus: status, ...outcomes }]),
    )
    return id
  }
  return {
    started,
    clock,
    log,
    billing,
    signer,
    session,
    admit,
    settle,
    /** Admits a call and settles it. */
    spend: async (spent: Spent = {}) => settle(await admit(spent), spent),
    grant: (
      micros: bigint,
      account = "acct_1",
      reason = "Free credit",
      id: string = randomUUID(),
    ) => Effect.runPromise(billing.adjust({ id, account, amountMicros: micros, reason })),
    ask: (
      endpoint: Endpoint,
      query: Record<string, string> = {},
      caller: Caller = session("acct_1"),
      params: Record<string, string> = {},
    ) => deps.ask(endpoint, undefined, { caller, query, params }),
    /** The text of a CSV reply, and the number of its pieces. */
    csv: async (
      endpoint: Endpoint,
      query: Record<string, string> = {},
      caller: Caller = session("acct_1"),
    ) => {
      const reading = Effect.gen(function* () {
        const { reply } = yield* deps.path.run(
          endpoint,
          deps.input(undefined, { caller, query: { format: "csv", ...query } }),
        )
        if (!("bytes" in reply)) throw new Error("no bytes")
        return {
          headers: reply.headers,
          mediaType: reply.mediaType,
          pieces: yield* Stream.runCollect(reply.bytes),
        }
      })
      const { pieces, ...head } = await Effect.runPromise(Effect.scoped(reading))
      return { ...head, pieces: pieces.length, text: Buffer.concat(pieces).toString() }
    },
  }
}

export type TestLedger = Awaited<ReturnType<typeof openTestLedger>>
