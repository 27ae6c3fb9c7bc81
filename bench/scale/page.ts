import type { Conditions, MeasuredCosts } from "./costs.ts"
import { meanCall, type Scenario } from "./figures.ts"
import { growTo, type Step, scenarioOf } from "./growth.ts"
import {
  callsOf,
  deploymentToday,
  hardware,
  paidKinds,
  processLoad,
  today,
} from "./load-profile.ts"
import * as tables from "./page-tables.ts"
import { farthest, figure, percent, sum, times } from "./page-tables.ts"
import { erlangC } from "./queueing.ts"
import { processesFor, saturations } from "./resources.ts"

/** docs/scale.md, from bench/scale/costs.json. */

const inShort = (costs: MeasuredCosts, steps: readonly Step[]): string => {
  const { kinds, ladder } = costs
  const best = (processes: number) =>
    ladder
      .filter((rung) => rung.processes === processes && rung.accounts === "many")
      .reduce((a, b) => (b.perSecond > a.perSecond ? b : a))
  const all = [...new Set(ladder.map(({ processes }) => processes))]
  const apart = ladder.findLast(({ accounts }) => accounts === "apart")
  const mixed = ladder.find(
    ({ accounts, processes, connections }) =>
      accounts === "many" && processes === apart?.processes && connections === apart.connections,
  )
  const [first, last] = [steps[0]!, steps.at(-1)!]
  const fullAt = (low: number, high: number) =>
    first.parts.filter(({ factor }) => factor > low && factor <= high)
  const named = (low: number, high: number) =>
    fullAt(low, high)
      .map(({ resource, factor }) => `${resource.name} (${times(factor)})`)
      .join(", ") || "nothing more"
  const wait = erlangC(hardware.databaseCores, 0.7 * hardware.databaseCores)
  return [
    `- A chat call costs Rakit ${figure(kinds.chat.rakitCpuUs)} µs of CPU and PostgreSQL ${figure(kinds.chat.postgresCpuUs)} µs, ${figure(kinds.chat.walBytes)} bytes of write-ahead log and ${figure(sum(Object.values(kinds.chat.bytes)))} bytes that stay. That carries over to other machines, by the speed of their cores; calls a second don't.`,
    `- ${all.map((n) => `${n} ${n === 1 ? "process" : "processes"}`).join(", ")} on one database served ${all.map((n) => figure(best(n).perSecond)).join(", ")} calls/s at most, at ${all.map((n) => figure(best(n).rakitCpuUs + best(n).postgresCpuUs)).join(", ")} µs of CPU each, beside programs that took ${all.map((n) => figure(best(n).foreignCores)).join(", ")} cores. That is no growth to go by: load generator, processes and PostgreSQL share ${costs.machine.cores} cores, which one process and its database nearly fill. The same calls in more processes share fewer statements, so each costs more.`,
    ...(apart
      ? [
          `- Groups of calls of different processes wait for each other where they meet in an account: ${apart.processes} processes served ${figure(apart.perSecond)} calls/s with accounts of their own, as behind a balancer that goes by the API key, and ${figure(mixed?.perSecond ?? Number.NaN)} without.`,
        ]
      : []),
    `- If nothing is changed, of ${deploymentToday.processes} processes and one PostgreSQL under the load below (1x: ${figure(callsOf(today))} paid calls a second) these are full, the first first. Up to 10x: ${named(0, 10)}. Up to 100x: ${named(10, 100)}. Up to 1000x: ${named(100, farthest)}.`,
    `- With ${steps.length - 1} changes nothing is full at 1000x: ${figure(processesFor(last.scenario, farthest))} processes and ${last.scenario.deployment.shards} ${last.scenario.deployment.shards === 1 ? "database" : "databases"}.`,
    `- Queues are short until a part is nearly full: of ${hardware.databaseCores} cores of PostgreSQL that are 70 % busy, a statement finds none free ${percent(wait)} of the time (Erlang C).`,
  ].join("\n")
}

const averages = (values: readonly number[]): string => values.map((n) => n.toFixed(1)).join(", ")

const conditionsOf = ({ rounds, ms, loadBefore, loadAfter }: Conditions): string =>
  `medians of ${rounds} rounds of ${figure(ms / 1000)} s, load average (1, 5, 15 min) ${averages(loadBefore)} before and ${averages(loadAfter)} after`

/** The part of the page that was measured. */
const measuredSection = (costs: MeasuredCosts): string => {
  const { machine } = costs
  const foreign = costs.ladder.map(({ foreignCores }) => foreignCores)
  return `## Measured

${costs.date}, ${machine.cores} cores (${machine.cpu}), ${machine.memoryGb} GB, Linux ${machine.kernel}, Node ${machine.node}; ${machine.postgres}. A flush of the write-ahead log took ${figure(costs.flushMs)} ms.
The ladder: ${conditionsOf(costs.conditions.ladder)}. The rest: ${conditionsOf(costs.conditions.kinds)}. During the ladder programs that have nothing to do with it took ${figure(Math.min(...foreign))} to ${figure(Math.max(...foreign))} cores, beside each row. Models are fakes that answer at once, so all of this is Rakit and PostgreSQL.

### One to three processes, one database

A closed loop: each connection sends its next chat call (12 words) when it has its answer. Calls are spread over 400 accounts and all processes, but where the row says otherwise.

${tables.ladderTable(costs)}

What limits it: the cores. Where their sum is below ${machine.cores}, calls wait for each other: a process has one statement of admission and one of settlement under way, and a settlement keeps the rows of its accounts locked until it is flushed. Calls of one process share statements, so the more calls meet in one process, the less each costs; the same calls spread over more processes share less,
and statements of different processes that meet in an account wait for one another (\`each process with its own accounts\` is a balancer that goes by the API key).

### What one of each costs

CPU, statements and transactions without those of idle processes: each takes ${figure(costs.idle.rakitCpuUs / 1000)} ms of CPU a second, ${figure(costs.idle.postgresCpuUs / 1000)} ms of PostgreSQL's and ${figure(costs.idle.statements)} statements, holds ${figure(costs.idle.connections)} connections and ${figure(costs.idle.residentMb)} MB. One process; calls under 64 connections, files of ${figure(costs.fileBytes / 1024)} kB and searches under 8; the streamed answer has ${costs.streamTokens} words.

${tables.costsTable(costs)}

${tables.writesTable(costs)}

Bytes kept are the growth of the files meanwhile. A call's row is written twice, and where autovacuum has freed first versions, later rows take their place: what ran later shows less, and the simulation takes the most of them. PostgreSQL reports rows some seconds late: read 0.93 or 1.03 as 1.
A delivery is the difference between batches of one line with twenty webhooks and without. Statements of money are shared, so there are fewer than calls.

### Searches and the size of the index

The own exact scan, 384 dimensions, one account. The first search after a change of the index reads its vectors from the database.

${tables.searchTable(costs)}`
}

/** The part that the simulation says. */
const simulatedSection = (scenario: Scenario, steps: readonly Step[]): string => {
  const { costs } = scenario
  const { kinds } = costs
  const [callMs, databaseMs] = (["rakitCpuUs", "postgresCpuUs"] as const).map(
    (key) => meanCall(scenario, key) / 1000,
  )
  return `## Simulated

### The load

1x is ${figure(callsOf(today))} paid calls (${paidKinds.map((kind) => today.rates[kind]).join(" + ")}) in the busiest second; the mean of a month is ${figure(100 * today.meanOfPeak)} % of that. The busiest account makes ${figure(100 * today.busiestAccount)} % of all calls. ${today.chunks.toLocaleString("en-US")} chunks of knowledge files at 1x, ${figure(100 * today.activeChunks)} % of them of accounts that search within the same minutes; a search goes over ${today.chunksOfAccount.toLocaleString("en-US")}. All of it grows alike: more accounts, each as large as today, but for the busiest one, which grows with the rest.

${tables.profileTable()}

### The parts, if nothing is changed

${deploymentToday.processes} processes of one core, and a PostgreSQL with ${hardware.databaseCores} cores like these, ${hardware.databaseMemoryGb} GB, a disk of ${deploymentToday.diskTb} TB that takes ${hardware.walMbPerSecond} MB/s of write-ahead log, with its default settings. In bold: full.

${tables.usesTable(scenario)}

The arithmetic:

${tables.arithmeticList(saturations(scenario).map(({ resource }) => resource))}

### What to change, in this order

Each row changes what helps the part that was full first, until nothing is full at 1000x. Processes are added so that none is more than ${figure(100 * processLoad)} % full.

${tables.stepsTable(steps)}

Each change alone, and the part that it is for (with as many processes as needed):

${tables.remediesTable(costs)}

"Not written yet" is what this version can't do. Shards of accounts are deployments of their own, with a router before them that knows the account of a key. Whether a pooler fits is in the README of [database-postgres](../plugins/database-postgres/README.md). A replica helps searches alone: every other call writes. An external queue takes at most ${figure(kinds.webhook.statements)} statements a delivery away from PostgreSQL (${figure(kinds.webhook.postgresCpuUs)} µs of CPU); few deliveries are made, so that it moves little. Lines of batches wait in no queue, but in their batch.

### How long calls wait

An event simulation of 20,000 calls each: random arrivals, ${figure(callMs!)} ms of CPU in a process (exponential), an admission, a settlement with its flush, both gathered as billing-ledger does, ${figure(databaseMs!)} ms of PostgreSQL's CPU in all. The model's own time comes on top.

${tables.waitsTable(scenario, steps.at(-1)!.scenario)}

The same simulation beside the measured loops of one process, with the process's own CPU a call as measured: how far to trust it.

${tables.checkTable(costs)}`
}

const limitsSection = ({ machine }: MeasuredCosts): string => `## What this does not say

- The processes, PostgreSQL and the client had ${machine.cores} cores together, so the growth from one to three processes on machines of their own was not measured; its cost a call was. Cores of other machines differ, and a database over a network adds its round trips: two statements in a row.
- A call is that of an empty database, filled within minutes. Indexes of a hundred million rows are deeper, and their pages not always in memory.
- Costs are those of one size of call. Long answers cost Rakit more, by the word: compare the streamed call with the other.
- Models are not in it. Engines of their own ([deploy](../deploy/README.md)) grow by themselves.
- Groups of calls of different processes that meet in one account wait for one another; the simulation has that for the busiest account only.`

export const scalePage = (costs: MeasuredCosts): string => {
  const scenario = scenarioOf(costs)
  const steps = growTo(scenario, farthest)
  return `# What one node does, and how it grows

Made by \`npm run docs\` from [bench/scale/costs.json](../bench/scale/costs.json), which \`bench/scale.ts --write\` measures; a test keeps them equal. The first part is measured, the second a simulation that reads the measured costs.

![Calls a second against times of today's load, and the part that is full first](scale.svg)

${inShort(costs, steps)}

${measuredSection(costs)}

${simulatedSection(scenario, steps)}

${limitsSection(costs)}
`
}
