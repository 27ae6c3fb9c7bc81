import { Effect, Schema, Stream } from "effect"
import { beforeEach, vi } from "vitest"
import { type CallPathFixture, callPathFixture, fakeChatModel } from "../../../testing/index.ts"
import type { ApiError, PortError } from "../../errors.ts"
import { type Call, defineEndpoint, type Endpoint, type Reply } from "../../ports/endpoint.ts"
import { usageOf } from "../../usage.ts"

export const model = "svc-lyt"
const bound = usageOf({ inputTokens: 1_000_000, outputTokens: 1_000_000 })
export const used = (outputTokens: number) => usageOf({ inputTokens: 1_000_000, outputTokens })
// Rp1,500 in and Rp6,000 out per million
export const holdMicros = 7_500_000_000n
export const inputMicros = 1_500_000_000n
export const startMicros = 50_000_000_000n

export type Answering = (
  call: Call<{ readonly n: number }>,
) => Effect.Effect<Reply, ApiError | PortError>

export interface CallFixture {
  readonly fixture: CallPathFixture
  /** What happened, in order. */
  readonly steps: readonly string[]
  endpoint(answer: Answering, more?: Partial<Endpoint>): Endpoint
  balance(): Promise<{ readonly balanceMicros: bigint; readonly heldMicros: bigint }>
  /** The last admitted call. */
  last(): CallPathFixture["billing"]["calls"][number] | undefined
}

/** An endpoint that does as a test says, on the real call path, with the steps written down. */
const openCallFixture = (): CallFixture => {
  const fixture = callPathFixture([fakeChatModel()], startMicros)
  const steps: string[] = []
  const note = (step: string) => Effect.sync(() => steps.push(step))
  const { admit, settle } = fixture.billing
  vi.spyOn(fixture.billing, "admit").mockImplementation((request) =>
    Effect.tap(admit(request), () => note(`admit ${request.counts}`)),
  )
  vi.spyOn(fixture.billing, "settle").mockImplementation((items) =>
    Effect.tap(settle(items), () => note(`settle ${items[0]?.outcome}`)),
  )
  const endpoint: CallFixture["endpoint"] = (answer, more) => ({
    ...defineEndpoint<{ readonly n: number }>({
      id: "test",
      summary: "",
      method: "POST",
      path: "/v1/test",
      access: "key",
      body: Schema.Struct({ n: Schema.Int }),
      maxBodyBytes: 1000,
      creates: true,
      plan: (call) =>
        Effect.as(note("plan"), {
          bound: { [model]: bound },
          run: Effect.tap(answer(call), () => note("ran")),
        }),
    }),
    ...more,
  })
  return {
    fixture,
    steps,
    endpoint,
    balance: () => Effect.runPromise(fixture.billing.balance("acct_1")),
    last: () => fixture.billing.calls.at(-1),
  }
}

/** A fresh fixture for each test of the file, behind one object. */
export const useCallFixture = (): CallFixture => {
  let current: CallFixture
  beforeEach(() => {
    current = openCallFixture()
  })
  return {
    get fixture() {
      return current.fixture
    },
    get steps() {
      return current.steps
    },
    endpoint: (answer, more) => current.endpoint(answer, more),
    balance: () => current.balance(),
    last: () => current.last(),
  }
}

/** A whole reply that used so many output tokens. */
export const whole =
  (outputTokens: number): Answering =>
  (call) =>
    Effect.sync(() => {
      call.context.meter(model, used(outputTokens))
      return { status: 200, json: { n: call.body.n } }
    })

/** `made` events, each metered before it is out, and then whatever `rest` does. */
export const streaming =
  (made: number, rest: Stream.Stream<never, ApiError> = Stream.empty): Answering =>
  (call) =>
    Effect.succeed({
      status: 200,
      events: Stream.range(1, made).pipe(
        Stream.rechunk(1),
        Stream.tap((n) => Effect.sync(() => call.context.meter(model, used(n)))),
        Stream.concat(rest),
      ),
    })
