import { table } from "../../docs/table.ts"
import type { Costs, MeasuredCosts, Rung } from "./costs.ts"
import { type Scenario, statementUs } from "./figures.ts"
import { remedies, type Step, scenarioOf, timesAt } from "./growth.ts"
import { callsOf, deploymentToday, gathered, processLoad, today } from "./load-profile.ts"
import { simulate } from "./queueing.ts"
import { processesFor, type Resource, resourcesOf, saturationOf, saturations } from "./resources.ts"

/** Tables and figures of docs/scale.md. */

export const factors = [1, 10, 100, 1000] as const
export const farthest = 1000

export const figure = (value: number): string => {
  if (!Number.isFinite(value)) return "never"
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString("en-US")
  return String(Number(value.toPrecision(3)))
}
export const percent = (share: number): string =>
  share >= 9.995 ? `${figure(share)} x` : `${figure(100 * share)} %`
export const times = (factor: number): string =>
  Number.isFinite(factor) ? `${figure(factor)}x` : "never"
export const sum = (values: readonly number[]): number => values.reduce((a, b) => a + b, 0)

export const kindNames: Readonly<Record<keyof MeasuredCosts["kinds"], string>> = {
  chat: "chat call",
  chatStream: "chat call, streamed",
  embedding: "embedding of one text",
  batchLine: "line of a chat batch",
  webhook: "webhook delivery",
  chunk: "chunk of a knowledge file, read, embedded and indexed",
  file: "file, uploaded",
}

const accountsText: Readonly<Record<Rung["accounts"], string>> = {
  many: "",
  apart: ", each process with its own accounts",
  one: ", one account",
}

export const ladderTable = ({ ladder }: MeasuredCosts): string =>
  table(
    [
      "processes",
      "connections",
      "calls/s",
      "p50 ms",
      "p99 ms",
      "Rakit µs a call",
      "PostgreSQL µs a call",
      "cores: Rakit + PostgreSQL + client + others",
      "calls in a settlement",
      "database connections",
      "failures",
    ],
    ladder.map((rung) => [
      String(rung.processes),
      `${rung.connections}${accountsText[rung.accounts]}`,
      ...[rung.perSecond, rung.p50Ms, rung.p99Ms, rung.rakitCpuUs, rung.postgresCpuUs].map(figure),
      [
        (rung.perSecond * rung.rakitCpuUs) / 1e6,
        (rung.perSecond * rung.postgresCpuUs) / 1e6,
        rung.clientCores,
        rung.foreignCores,
      ]
        .map((cores) => cores.toFixed(2))
        .join(" + "),
      figure(rung.callsPerSettlement),
      figure(rung.databaseConnections),
      figure(rung.failures),
    ]),
  )

const costRow = (name: string, costs: Costs): readonly string[] => [
  name,
  ...[costs.perSecond, costs.rakitCpuUs, costs.postgresCpuUs, costs.statements].map(figure),
  ...[costs.transactions, costs.flushes, costs.walBytes].map(figure),
  figure(sum(Object.values(costs.bytes))),
]

export const costsTable = ({ kinds, search }: MeasuredCosts): string =>
  table(
    [
      "one",
      "a second",
      "Rakit µs",
      "PostgreSQL µs",
      "statements",
      "transactions",
      "flushes",
      "WAL bytes",
      "bytes kept",
    ],
    [
      ...Object.entries(kindNames).map(([kind, name]) =>
        costRow(name, kinds[kind as keyof typeof kinds]),
      ),
      ...search.map((costs) =>
        costRow(`search of ${costs.chunks.toLocaleString("en-US")} chunks`, costs),
      ),
    ],
  )

export const writesTable = ({ kinds }: MeasuredCosts): string =>
  table(
    ["one", "rows inserted / updated / deleted", "bytes of tables with their indexes"],
    Object.entries(kindNames).map(([kind, name]) => {
      const { rows, bytes } = kinds[kind as keyof typeof kinds]
      const written = Object.entries(rows).map(
        ([row, { inserted, updated, deleted }]) =>
          `\`${row}\` ${[inserted, updated, deleted].map((n) => figure(Math.round(n * 100) / 100)).join(" / ")}`,
      )
      const kept = Object.entries(bytes).map(([row, n]) => `\`${row}\` ${figure(n)}`)
      return [name, written.join(", "), kept.join(", ")]
    }),
  )

export const searchTable = ({ search }: MeasuredCosts): string =>
  table(
    ["chunks of the account", "searches/s", "p50 ms", "p99 ms", "first search ms", "Rakit µs"],
    search.map(({ chunks, perSecond, p50Ms, p99Ms, firstMs, rakitCpuUs }) => [
      chunks.toLocaleString("en-US"),
      ...[perSecond, p50Ms, p99Ms, firstMs, rakitCpuUs].map(figure),
    ]),
  )

export const usesTable = (scenario: Scenario): string =>
  table(
    ["part", "holds", ...factors.map((factor) => `${factor}x`), "full at"],
    saturations(scenario).map(({ resource, factor: full }) => [
      resource.name,
      `${figure(resource.capacity(1))} ${resource.unit}`,
      ...factors.map((factor) => {
        const share = resource.use(factor) / resource.capacity(factor)
        return share >= 1 ? `**${percent(share)}**` : percent(share)
      }),
      times(full),
    ]),
  )

export const arithmeticList = (parts: readonly Resource[]): string =>
  parts
    .map(
      ({ name, unit, use, capacity, arithmetic }) =>
        `- **${name}**: ${arithmetic}. ${figure(use(1))} of ${figure(capacity(1))} ${unit} at 1x.`,
    )
    .join("\n")

export const stepsTable = (steps: readonly Step[]): string =>
  table(
    [
      "change",
      "it is",
      "then full first",
      "at",
      "paid calls/s there",
      "processes there",
      "databases",
    ],
    steps.map(({ scenario, remedy, parts }) => {
      const { resource, factor } = parts[0]!
      const reached = Math.min(factor, farthest)
      return [
        remedy?.name ?? "as today",
        remedy?.kind ?? "",
        factor > farthest ? "nothing up to 1000x" : resource.name,
        times(factor),
        figure(callsOf(scenario.profile) * reached),
        figure(processesFor(scenario, reached)),
        String(scenario.deployment.shards),
      ]
    }),
  )

/** Each remedy alone, with as many processes as the load needs, so that only its part is compared. */
export const remediesTable = (costs: MeasuredCosts): string => {
  const rows = Object.entries(remedies).flatMap(([id, list]) =>
    list.map(({ name, kind, change }) => {
      const before =
        id === "rakit-cpu" ? deploymentToday : { ...deploymentToday, processes: undefined }
      const at = (deployment: typeof before) => {
        const part = resourcesOf(scenarioOf(costs, deployment)).find((one) => one.id === id)!
        return { name: part.name, factor: saturationOf(part) }
      }
      const [then, now] = [at(before), at({ ...before, ...change(before, costs) })]
      return [then.name, name, kind, times(then.factor), times(now.factor)]
    }),
  )
  return table(["part", "change", "it is", "full at", "with it"], rows)
}

const waitRow = (scenario: Scenario, factor: number, name: string): readonly string[] => {
  const waited = timesAt(scenario, factor)
  return [
    name,
    times(factor),
    figure(callsOf(scenario.profile) * factor),
    figure(processesFor(scenario, factor)),
    String(scenario.deployment.shards),
    ...(waited
      ? [figure(waited.p50Ms), figure(waited.p99Ms), figure(waited.callsPerSettlement)]
      : ["full", "full", ""]),
  ]
}

export const waitsTable = (first: Scenario, last: Scenario): string => {
  const cpu = resourcesOf(first).find(({ id }) => id === "rakit-cpu")!
  const full = saturationOf(cpu) / processLoad
  const shares = [0.3, 0.6, 0.8, 0.9]
  return table(
    [
      "deployment",
      "load",
      "paid calls/s",
      "processes",
      "databases",
      "p50 ms",
      "p99 ms",
      "calls in a settlement",
    ],
    [
      ...[1, 10].map((factor) => waitRow(first, factor, "as today")),
      ...shares.map((share) =>
        waitRow(
          first,
          Number((share * full).toPrecision(3)),
          `as today, processes ${100 * share} % full`,
        ),
      ),
      ...factors.slice(1).map((factor) => waitRow(last, factor, "with all changes")),
    ],
  )
}

export const profileTable = (): string => {
  const names: Readonly<Record<string, string>> = { ...kindNames, search: "search" }
  return table(
    ["in the busiest second", ...factors.map((factor) => `${factor}x`)],
    Object.entries(today.rates).map(([kind, rate]) => [
      names[kind]!,
      ...factors.map((factor) => figure(rate * factor)),
    ]),
  )
}

/** What the simulation makes of the measured loops of one process. */
export const checkTable = (costs: MeasuredCosts): string => {
  const { statement, call } = statementUs(costs)
  const alone = costs.ladder.filter(
    ({ processes, accounts }) => processes === 1 && accounts === "many",
  )
  return table(
    [
      "connections",
      "calls/s measured",
      "simulated",
      "p50 ms measured",
      "simulated",
      "calls in a settlement measured",
      "simulated",
    ],
    alone.map((rung) => {
      const found = simulate({
        perSecond: 0,
        connections: rung.connections,
        processes: 1,
        callMs: rung.rakitCpuUs / 1000,
        databaseCores: Math.max(1, costs.machine.cores - 1),
        statementMs: statement / 1000,
        itemMs: call / 1000,
        gathered,
        flushMs: costs.flushMs,
      })
      return [
        String(rung.connections),
        ...[rung.perSecond, found.perSecond, rung.p50Ms, found.p50Ms].map(figure),
        ...[rung.callsPerSettlement, found.callsPerSettlement].map(figure),
      ]
    }),
  )
}
