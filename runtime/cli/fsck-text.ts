import { type CheckReport, isClean, type ShownFinding } from "./fsck-run.ts"

const many = (count: number, what: string) =>
  `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`

const remedyOf = ({ remedy, repaired, failure }: ShownFinding): string => {
  if (failure !== undefined) return ` (could not be repaired: ${failure})`
  if (remedy === undefined) return " (a person has to look)"
  return repaired ? ` (repaired: ${remedy})` : ` (--repair: ${remedy})`
}

/** One line for the check, then one for each finding. */
export const checkText = (report: CheckReport): string => {
  const { name, about, looked, found, findings, failure } = report
  const sign = isClean(report) ? (found === 0 ? "ok     " : "repaired ") : "FOUND  "
  const more = found - findings.length
  return [
    `${sign} ${name}: ${about} (${looked.toLocaleString("en-US")} looked at)\n`,
    ...findings.map(
      (finding) => `          ${finding.subject}: ${finding.problem}${remedyOf(finding)}\n`,
    ),
    ...(more > 0 ? [`          and ${more.toLocaleString("en-US")} more\n`] : []),
    ...(failure === undefined ? [] : [`          not finished: ${failure}\n`]),
  ].join("")
}

const sum = (reports: readonly CheckReport[], pick: (report: CheckReport) => number): number =>
  reports.reduce((all, report) => all + pick(report), 0)

export const summaryText = (reports: readonly CheckReport[]): string => {
  if (reports.length === 0) return "No plugin of this deployment has anything to compare.\n"
  const [found, repaired, repairable, unfinished] = [
    sum(reports, (report) => report.found),
    sum(reports, (report) => report.repaired),
    sum(reports, (report) => report.repairable),
    sum(reports, ({ failure }) => (failure === undefined ? 0 : 1)),
  ]
  const head = `${many(reports.length, "check")}, ${sum(reports, ({ looked }) => looked).toLocaleString("en-US")} looked at`
  if (found + unfinished === 0) return `Clean: ${head}.\n`
  const left = found - repaired
  return `${[
    `${many(found, "finding")} in ${head}`,
    ...(repaired > 0 ? [`${repaired.toLocaleString("en-US")} repaired`] : []),
    ...(repairable > 0 ? [`--repair would repair ${repairable.toLocaleString("en-US")}`] : []),
    ...(left - repairable > 0
      ? [`${(left - repairable).toLocaleString("en-US")} for a person to look at`]
      : []),
    ...(unfinished > 0 ? [`${many(unfinished, "check")} not finished`] : []),
  ].join("; ")}.\n`
}

export const reportsJson = (reports: readonly CheckReport[]): string =>
  `${JSON.stringify({ object: "fsck", clean: reports.every(isClean), checks: reports })}\n`
