import { randomUUID } from "node:crypto"
import { Effect } from "effect"
import fc from "fast-check"
import type { Limits } from "../../../core/caller.ts"
import type { AdmitRequest, Billing, Settlement } from "../../../core/ports/billing.ts"
import { uuidV7 } from "../../../core/services/ids.ts"
import { usageOf } from "../../../core/usage.ts"
import { fakeBilling } from "../../fakes/billing.ts"
import type { FakeClock } from "../../fakes/clock.ts"
import { type UsageOfHour, usageOfHours } from "./usage.ts"

/** A step of a random day. `nth` counts from the newest call; `times`: parallel or refused at once. */
export type Step =
  | {
      readonly do: "admit"
      readonly key: number
      readonly counts: AdmitRequest["counts"]
      readonly hold: number
      readonly mode: "live" | "test"
      readonly model: string | undefined
      readonly expiresInMs: number | undefined
      readonly limits: Limits
      readonly times: number
    }
  | {
      readonly do: "settle"
      readonly nth: number
      readonly outcome: Settlement["outcome"]
      readonly cost: number
      readonly tokens: number
      readonly status: number
      readonly times: number
    }
  | { readonly do: "wait"; readonly ms: number }
  | { readonly do: "adjust"; readonly account: number; readonly amount: number }
  | { readonly do: "voidChildren" }
  | { readonly do: "expire" }
  | { readonly do: "expireDue" }

const limitsArbitrary = fc.record({
  rpm: fc.constantFrom(3, 5, 100),
  rpd: fc.constantFrom(6, 1000, 1000),
  concurrency: fc.constantFrom(2, 100, 100),
  monthlyCapMicros: fc.constantFrom(0n, 0n, 40n),
  bodyMb: fc.constant(1),
})

/** Most calls of a schedule share limits; for some the owner has changed them. */
const admitArbitrary = (usual: Limits) =>
  fc.record({
    do: fc.constant("admit" as const),
    key: fc.constantFrom(0, 0, 0, 1, 2),
    counts: fc.oneof(
      { weight: 6, arbitrary: fc.constant("all" as const) },
      fc.constantFrom("rpm" as const, "money" as const, "peek" as const),
    ),
    hold: fc.constantFrom(0, 0, 1, 7, 20),
    mode: fc.oneof(
      { weight: 9, arbitrary: fc.constant("live" as const) },
      fc.constant("test" as const),
    ),
    model: fc.constantFrom("m1", "m1", "m2", undefined),
    expiresInMs: fc.constantFrom(undefined, undefined, 20_000, 120_000),
    limits: fc.oneof({ weight: 9, arbitrary: fc.constant(usual) }, limitsArbitrary),
    times: fc.oneof({ weight: 4, arbitrary: fc.constant(1) }, fc.integer({ min: 2, max: 8 })),
  })

const settleArbitrary = fc.record({
  do: fc.constant("settle" as const),
  nth: fc.nat(8),
  outcome: fc.constantFrom(
    "settled" as const,
    "settled" as const,
    "voided" as const,
    "refused" as const,
    "refused" as const,
  ),
  cost: fc.nat(25),
  tokens: fc.nat(9),
  status: fc.constantFrom(200, 200, 200, 400, 499, 500),
  times: fc.constantFrom(1, 1, 5),
})

const hourMs = 3_600_000
const waitArbitrary = fc.record({
  do: fc.constant("wait" as const),
  ms: fc.constantFrom(
    1,
    1,
    500,
    20_000,
    40_000,
    59_999,
    60_000,
    hourMs,
    11 * hourMs,
    18 * 24 * hourMs,
  ),
})

const stepArbitrary = (usual: Limits): fc.Arbitrary<Step> =>
  fc.oneof(
    { weight: 9, arbitrary: admitArbitrary(usual) },
    { weight: 6, arbitrary: settleArbitrary },
    { weight: 4, arbitrary: waitArbitrary },
    {
      weight: 2,
      arbitrary: fc.record({
        do: fc.constant("adjust" as const),
        account: fc.constantFrom(0, 0, 1),
        amount: fc.integer({ min: -20, max: 60 }),
      }),
    },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("voidChildren" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("expire" as const) }) },
    { weight: 1, arbitrary: fc.record({ do: fc.constant("expireDue" as const) }) },
  )

/** Schedules with many conflicts: few keys, small limits, small amounts, many steps. */
export const scheduleArbitrary: fc.Arbitrary<readonly Step[]> = limitsArbitrary.chain((usual) =>
  fc.array(stepArbitrary(usual), { minLength: 10, maxLength: 60, size: "max" }),
)

export interface ScheduleSubject {
  readonly billing: Billing
  readonly clock: FakeClock
  /** Without money, holds are 0 and balances are not compared. */
  readonly money: boolean
  /** Settles open calls as if their replica had died; without it no replica dies. */
  expireOpen?(): Promise<void>
  /** Settles the open calls that have expired; their replica is alive. */
  expireDue?(): Promise<void>
  /** Its usage report of these accounts, in the order of `usageOfHours`. */
  usage?(accounts: readonly string[]): Promise<readonly UsageOfHour[]>
}

/** What a step showed of the reference and the subject; they must be equal. */
export interface Observation {
  readonly step: Step | "usage"
  readonly expected: unknown
  readonly actual: unknown
}

interface Pair {
  readonly expected: string
  readonly actual: string
}

const ask = (
  billing: Billing,
  request: AdmitRequest,
): Promise<{ readonly id: string; readonly answer: unknown; readonly admitted: boolean }> =>
  Effect.runPromise(
    billing.admit(request).pipe(
      Effect.map(({ holdMs: _, ...rate }) => ({
        id: request.id,
        answer: rate as unknown,
        admitted: request.counts !== "peek",
      })),
      Effect.catchTag("Refusal", (refusal) =>
        Effect.succeed({ id: request.id, answer: refusal as unknown, admitted: false }),
      ),
    ),
  )

const succeeds = (effect: Effect.Effect<void, unknown>): Promise<boolean> =>
  Effect.runPromise(
    effect.pipe(
      Effect.as(true),
      Effect.catch(() => Effect.succeed(false)),
    ),
  )

/** Runs a schedule on a provider of Billing and on the exact fake, side by side. */
export const runSchedule = async (
  steps: readonly Step[],
  subject: ScheduleSubject,
): Promise<readonly Observation[]> => {
  const { clock, money } = subject
  const fake = fakeBilling(clock)
  const both = [fake, subject.billing] as const
  const run = randomUUID()
  const accounts = [`${run}-a`, `${run}-b`] as const
  const calls: Pair[] = []

  const request = (step: Step & { do: "admit" }): AdmitRequest => {
    const tenant = { account: accounts[step.key === 2 ? 1 : 0], mode: step.mode }
    const caller = {
      tenant,
      keyId: `${run}-${step.key}-${step.mode}`,
      scopes: ["*"],
      role: "user" as const,
      limits: step.limits,
    }
    const parent = step.counts === "money" ? { parent: `${run}-batch` } : {}
    const expiresMs = step.expiresInMs === undefined ? undefined : clock.nowMs() + step.expiresInMs
    const asked = {
      model: step.model,
      expiresMs,
      holdMicros: money ? BigInt(step.hold) : 0n,
      counts: step.counts,
    }
    return {
      id: uuidV7(clock.nowMs()),
      caller,
      endpoint: "chat.completions",
      requestId: "r",
      ...asked,
      ...parent,
    }
  }
  /** Parallel calls of one step are alike, so their answers are compared as a set. */
  const admit = async (step: Step & { do: "admit" }) => {
    const [expected, actual] = await Promise.all(
      both.map((billing) =>
        Promise.all(Array.from({ length: step.times }, () => ask(billing, request(step)))),
      ),
    )
    const admitted = (answers: typeof expected) =>
      (answers ?? []).filter((answer) => answer.admitted).map((answer) => answer.id)
    const others = admitted(actual)
    admitted(expected).forEach((id, index) => {
      calls.push({ expected: id, actual: others[index] ?? "" })
    })
    const answers = (side: typeof expected) =>
      (side ?? []).map((answer) => JSON.stringify(answer.answer)).sort()
    return [answers(expected), answers(actual)] as const
  }
  /** Only refusals are settled together: what late settlements charge depends on their order. */
  const settle = async ({ nth, outcome, cost, tokens, status, times }: Step & { do: "settle" }) => {
    const pairs = Array.from({ length: outcome === "refused" ? times : 1 }, (_, i) =>
      calls.at(-1 - nth - 2 * i),
    ).filter((pair) => pair !== undefined)
    const usage = {
      m1: usageOf({ inputTokens: tokens }),
      m2: usageOf({ inputTokens: 1, outputTokens: 2 * tokens }),
    }
    const items = (side: keyof Pair) =>
      pairs.map((pair) => ({
        id: pair[side],
        outcome,
        costMicros: BigInt(cost),
        usage,
        httpStatus: status,
      }))
    return [
      await succeeds(fake.settle(items("expected"))),
      await succeeds(subject.billing.settle(items("actual"))),
    ] as const
  }
  const each = async (what: (billing: Billing) => Effect.Effect<void, unknown>) =>
    [await succeeds(what(fake)), await succeeds(what(subject.billing))] as const
  const act = async (step: Step): Promise<readonly [unknown, unknown]> => {
    if (step.do === "admit") return admit(step)
    if (step.do === "settle") return settle(step)
    if (step.do === "voidChildren") return each((billing) => billing.voidChildren(`${run}-batch`))
    const entry = randomUUID()
    if (step.do === "adjust")
      return money
        ? each((billing) =>
            billing.adjust({
              id: entry,
              account: accounts[step.account]!,
              amountMicros: BigInt(step.amount),
              reason: "",
            }),
          )
        : [0, 0]
    if (step.do === "wait") clock.advance(step.ms)
    if (step.do === "expire" && subject.expireOpen) {
      fake.expireOpen()
      await subject.expireOpen()
    }
    if (step.do === "expireDue" && subject.expireDue) {
      fake.expireDue()
      await subject.expireDue()
    }
    return [0, 0]
  }
  const balances = (billing: Billing) =>
    Promise.all(accounts.map((account) => Effect.runPromise(billing.balance(account))))

  const seen: Observation[] = []
  for (const step of steps) {
    const [expected, actual] = await act(step)
    seen.push({
      step,
      expected: { answer: expected, balances: money && (await balances(fake)) },
      actual: { answer: actual, balances: money && (await balances(subject.billing)) },
    })
  }
  if (subject.usage)
    seen.push({
      step: "usage",
      expected: usageOfHours(fake.calls),
      actual: await subject.usage(accounts),
    })
  return seen
}
