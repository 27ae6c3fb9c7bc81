import type { Costs, MeasuredCosts } from "./costs.ts"
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

const keptBytes = ({ bytes }: Costs): number => Object.values(bytes).reduce((a, b) => a + b, 0)

/** What the load takes of one figure in the busiest second, at 1x. */
export const perSecond = ({ costs, profile }: Scenario, figure: Figure): number => {
  const of = (one: Costs) => (figure === "kept" ? keptBytes(one) : one[figure])
  const searched =
    figure === "rakitCpuUs" || figure === "postgresCpuUs"
      ? searchUs(costs, figure, profile.chunksOfAccount)
      : of(costs.search[0]!)
  return Object.entries(profile.rates).reduce(
    (sum, [kind, rate]) =>
      sum +
      rate * (kind === "search" ? searched : of(costs.kinds[kind as keyof typeof costs.kinds])),
    0,
  )
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
