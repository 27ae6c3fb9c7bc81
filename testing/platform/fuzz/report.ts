import type { Report } from "./run.ts"
import type { World } from "./world.ts"

const sorted = <A>(map: ReadonlyMap<string, A>) => [...map].toSorted(([a], [b]) => (a < b ? -1 : 1))

/**
 * Lines of the server's log that report an error: there should be none. A database that does not
 * reply for seconds says that the machine is busy.
 */
export const errorLines = ({ platform }: World): readonly string[] =>
  platform
    .output()
    .stderr.split("\n")
    .filter((line) => /"level":"(error|fatal)"/.test(line))
    .filter((line) => !line.includes('"event":"database.unreachable"'))

const credentialNames = (world: World, text: string): string =>
  world.actors.reduce(
    (line, { name, credential }) => (credential ? line.replaceAll(credential, `<${name}>`) : line),
    text,
  )

/** Each finding with a line for a shell, in which the actor's name stands for its credential. */
export const findingsText = ({ findings }: Report, world: World): string =>
  findings
    .map(
      ({ operation, rule, about, actor, count, curl, reply }) =>
        `${operation}: ${rule}: ${about} (${count} x, first by ${actor})\n  ${credentialNames(world, curl)}\n  -> ${reply}`,
    )
    .join("\n\n")

export const printReport = (report: Report, world: World): void => {
  for (const [operation, statuses] of sorted(report.statuses)) {
    const counts = [...statuses].toSorted(([a], [b]) => a - b).map(([s, n]) => `${s}: ${n}`)
    console.log(`  ${operation.padEnd(36)} ${counts.join("  ")}`)
  }
  const all = [...report.statuses.values()].flatMap((one) => [...one])
  const good = all.reduce((sum, [status, n]) => sum + (status < 300 ? n : 0), 0)
  const total = all.reduce((sum, [, n]) => sum + n, 0)
  console.log(`\n${total} replies, ${good} of them 2xx; ${report.findings.length} findings`)
  if (report.findings.length > 0) console.log(`\n${findingsText(report, world)}`)
  const lines = errorLines(world)
  if (lines.length > 0)
    console.log(`\n${lines.length} error lines:\n${lines.slice(0, 10).join("\n")}`)
}
