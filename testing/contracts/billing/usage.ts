import type { FakeCall } from "../../fakes/billing.ts"

/** The sums of the calls of one hour, key, model and endpoint. */
export interface UsageOfHour {
  readonly account: string
  readonly mode: string
  /** The start of the hour in Unix ms. */
  readonly hour: number
  readonly key: string
  readonly model: string
  readonly endpoint: string
  readonly requests: number
  readonly errors: number
  readonly inputTokens: number
  readonly outputTokens: number
  readonly costMicros: bigint
}

const hourMs = 3_600_000

const nothing = { requests: 0, errors: 0, inputTokens: 0, outputTokens: 0, costMicros: 0n }

const isError = ({ state, settlement }: FakeCall): boolean => {
  const status = settlement?.httpStatus ?? 200
  return state !== "settled" || (status >= 400 && status !== 499)
}

/**
 * The reference for usage reports: ended calls count in the hour of their admission; refused calls
 * and dry runs do not count.
 */
export const usageOfHours = (calls: readonly FakeCall[]): readonly UsageOfHour[] => {
  const rows = new Map<string, UsageOfHour>()
  for (const call of calls) {
    const { account, key, request, state, settlement, costMicros } = call
    if (state === "open" || state === "refused" || request.counts === "rpm") continue
    const group = {
      account,
      mode: request.caller.tenant.mode,
      hour: Math.floor(call.atMs / hourMs) * hourMs,
      key,
      model: request.model ?? "",
      endpoint: request.endpoint,
    }
    const row = rows.get(JSON.stringify(group)) ?? { ...group, ...nothing }
    const used = state === "settled" ? Object.values(settlement?.usage ?? {}) : []
    rows.set(JSON.stringify(group), {
      ...row,
      requests: row.requests + 1,
      errors: row.errors + (isError(call) ? 1 : 0),
      inputTokens: used.reduce((sum, usage) => sum + usage.inputTokens, row.inputTokens),
      outputTokens: used.reduce((sum, usage) => sum + usage.outputTokens, row.outputTokens),
      costMicros: row.costMicros + costMicros,
    })
  }
  return [...rows.keys()].sort().map((key) => rows.get(key)!)
}
