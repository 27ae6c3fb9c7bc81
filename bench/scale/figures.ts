import type { Costs, Kind, MeasuredCosts } from "./costs.ts"
import {
  callsOf,
  type Deployment,
  type Hardware,
  type LoadProfile,
  paidKinds,
} from "./load-profile.ts"

export interface Scenario {
  readonly costs: MeasuredCosts
  readonly profile: LoadProfile
  readonly hardware: Hardware
  readonly deployment: Deployment
}

/** The straight line with the least squares: [at 0, slope]. */
export const lineThrough = (
  points: readonly (readonly [number, number])[],
): readonly [number, number] => {
  const mean = (of: (point: readonly [number, number]) => number) =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length
  const [x, y] = [mean(([a]) => a), mean(([, b]) => b)]
  const spread = mean(([a]) => (a - x) ** 2)
  const slope = spread === 0 ? 0 : mean(([a, b]) => (a - x) * (b - y)) / spread
  return [y - slope * x, slope]
}

/** CPU of a search of an account with so many chunks, in µs. */
export const searchUs = (
  { search }: MeasuredCosts,
  key: "rakitCpuUs" | "postgresCpuUs",
  chunks: number,
): number => {
  const [base, each] = lineThrough(search.map((one) => [one.chunks, one[key]]))
  return Math.max(0, base + Math.max(0, each) * chunks)
}

/** PostgreSQL's CPU for a statement of the ledger, and for each call in it, in µs: the line through all rungs. */
export const statementUs = ({
  ladder,
}: MeasuredCosts): { readonly statement: number; readonly call: number } => {
  const many = ladder.filter(({ accounts }) => accounts === "many")
  const [call, statement] = lineThrough(
    many.map((rung) => [
      1 / rung.callsPerAdmission + 1 / rung.callsPerSettlement,
      rung.postgresCpuUs,
    ]),
  )
  return { statement: Math.max(1, statement), call: Math.max(1, call) }
}

type Figure = "rakitCpuUs" | "postgresCpuUs" | "walBytes" | "kept"

const sumOf = ({ bytes }: Costs, isMeant: (table: string) => boolean): number =>
  Object.entries(bytes).reduce((sum, [table, n]) => sum + (isMeant(table) ? n : 0), 0)

const isLedger = (table: string): boolean => table.startsWith("ledger_")

/**
 * Bytes that stay of one unit. Each paid kind writes the same rows of the ledger; what was measured
 * later filled space that autovacuum had freed, so the most that a kind took counts for all.
 */
const keptBytes = ({ kinds }: MeasuredCosts, kind: string, one: Costs): number => {
  if (!paidKinds.some((paid) => paid === kind)) return sumOf(one, () => true)
  const { chat, chatStream, embedding, batchLine } = kinds
  const ledger = [chat, chatStream, embedding, batchLine].map((paid) => sumOf(paid, isLedger))
  return sumOf(one, (table) => !isLedger(table)) + Math.max(...ledger)
}

/** What the load takes of one figure in the busiest second, at 1x. */
export const perSecond = ({ costs, profile }: Scenario, figure: Figure): number => {
  const isCpu = figure === "rakitCpuUs" || figure === "postgresCpuUs"
  const of = (kind: string): number => {
    if (kind === "search" && isCpu) return searchUs(costs, figure, profile.chunksOfAccount)
    const one = kind === "search" ? costs.search[0]! : costs.kinds[kind as Kind]
    return figure === "kept" ? keptBytes(costs, kind, one) : one[figure]
  }
  return Object.entries(profile.rates).reduce((sum, [kind, rate]) => sum + rate * of(kind), 0)
}

/** CPU of the mean paid call, in µs. */
export const meanCall = (
  { costs, profile }: Scenario,
  figure: "rakitCpuUs" | "postgresCpuUs",
): number => {
  const total = paidKinds.reduce(
    (sum, kind) =>
      sum +
      profile.rates[kind] *
        (kind === "search"
          ? searchUs(costs, figure, profile.chunksOfAccount)
          : costs.kinds[kind][figure]),
    0,
  )
  return total / callsOf(profile)
}
