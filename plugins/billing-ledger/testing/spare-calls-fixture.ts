import { Effect } from "effect"
import { vi } from "vitest"
import type { AdmitRequest, Limits } from "../../../core/index.ts"
import { fakeClock } from "../../../testing/index.ts"
import { makeSpareCalls } from "../spare-calls.ts"
import type { AdmissionVerdict, LedgerRequest } from "../statement-values.ts"
import { plainCall, withLimits } from "./plain-ledger.ts"

/** Spare calls of a database that answers when a test says so. */
export const openFixture = (most = 64) => {
  const clock = fakeClock()
  const open: (() => void)[] = []
  let said: AdmissionVerdict | undefined
  const asked: LedgerRequest[] = []
  const givenBack: string[] = []
  const spares = makeSpareCalls({
    clock,
    most,
    admit: (requests, done) => {
      asked.push(...requests)
      open.push(...requests.map((request) => () => done(request, said)))
    },
    giveBack: (some) => Effect.sync(() => void givenBack.push(...some.map(({ id }) => id))),
  })
  const admitted = (remaining = 30): AdmissionVerdict => ({
    rate: { limit: 60, remaining, resetMs: 60_000 },
  })
  return {
    spares,
    clock,
    asked,
    givenBack,
    admitted,
    /** The database answers all that it was asked. */
    answer: (verdict: AdmissionVerdict | undefined) => {
      said = verdict
      for (const answerOne of open.splice(0)) answerOne()
    },
    pass: (ms: number) => {
      clock.advance(ms)
      vi.advanceTimersByTime(ms)
    },
    call: (holdMicros = 0n, limits: Partial<Limits> = {}, account = "a"): AdmitRequest =>
      withLimits(plainCall(account, clock, holdMicros), limits),
  }
}

export type Fixture = ReturnType<typeof openFixture>
