import { Effect, Exit } from "effect"
import { resolve, Tokens } from "../../core/tokens.ts"
import { assemble } from "../boot/assemble.ts"
import { loadConfig } from "../config/load.ts"
import { makeLog } from "../services/log.ts"
import { address, drivers, models, port, services } from "./doctor/deployment.ts"
import { type Finding, problem, type State } from "./doctor/finding.ts"
import { clock, disk, memory, processor, versions } from "./doctor/machine.ts"
import { errorOf, reasonsOf, splitFix } from "./refuse.ts"
import { wrapped } from "./table.ts"

const examined = (file: string) =>
  Effect.gen(function* () {
    const config = yield* Effect.try({
      try: () => loadConfig(file, process.env),
      catch: (cause) => cause as Error,
    })
    const log = makeLog({ level: "silent", destination: { write: () => {} } })
    const deployment = yield* assemble(config, "command", log)
    const { dataDir, modelsDir } = resolve(deployment.container, Tokens.deployment)
    const { findings, bytes } = yield* models(deployment)
    const found: readonly Finding[] = [
      memory(bytes),
      disk("disk", dataDir),
      ...(modelsDir.startsWith(dataDir) ? [] : [disk("disk of models", modelsDir)]),
      ...(yield* drivers(deployment)),
      yield* Effect.promise(() => port(deployment)),
      ...(yield* services(deployment)),
      ...findings,
      address(deployment),
    ]
    return found.map((one) => ({ ...one, detail: config.mask.text(one.detail) }))
  })

/** Looks at the machine, and at the deployment that the config file describes. */
export const examine = async (file: string): Promise<readonly Finding[]> => {
  const machine = [versions(), processor()]
  const exit = await Effect.runPromiseExit(Effect.scoped(examined(file)))
  if (Exit.isSuccess(exit)) return [...machine, ...exit.value]
  const reasons = reasonsOf(errorOf(exit))
  return [
    ...machine,
    clock(Date.now()),
    ...reasons
      .map(splitFix)
      .map(({ message, fix }) =>
        problem(
          "config",
          message,
          `${fix ? `${fix.replace(/\.$/, "")}, ` : ""}then run rakit doctor again.`,
        ),
      ),
  ]
}

const marks: Readonly<Record<State, readonly [mark: string, colour: number]>> = {
  ok: ["ok", 32],
  warning: ["warning", 33],
  problem: ["PROBLEM", 31],
}
const columns = 100
const indent = 26

const linesOf = ({ name, state, detail, fix }: Finding, isColoured: boolean): string => {
  const [mark, colour] = marks[state]
  const shown = isColoured ? `\u001b[${colour}m${mark.padEnd(8)}\u001b[0m` : mark.padEnd(8)
  // errors of backends end with one
  const sentence = detail.replace(/\.$/, "")
  const text = fix ? `${sentence}. Fix: ${fix}` : detail
  const [first = "", ...rest] = wrapped(text, columns - indent)
  return [`${shown} ${name.padEnd(16)} ${first}`, ...rest.map((line) => " ".repeat(indent) + line)]
    .map((line) => `${line}\n`)
    .join("")
}

/** The verdict, then a line for each finding. */
export const reportText = (findings: readonly Finding[], isColoured: boolean): string => {
  const count = (state: State) => findings.filter((one) => one.state === state).length
  const [problems, warnings] = [count("problem"), count("warning")]
  const parts = [
    problems > 0 && `${problems} problem${problems === 1 ? "" : "s"}`,
    warnings > 0 && `${warnings} warning${warnings === 1 ? "" : "s"}`,
  ].filter(Boolean)
  const verdict = parts.length > 0 ? `${parts.join(" and ")}.` : "All is well."
  return `${verdict}\n\n${findings.map((one) => linesOf(one, isColoured)).join("")}`
}

/** Exits with 1 when there is a problem. */
export const doctor = async (file: string, { json }: { readonly json: boolean }): Promise<void> => {
  const findings = await examine(file)
  const isColoured = process.stdout.isTTY === true && !process.env.NO_COLOR
  const hasProblem = findings.some(({ state }) => state === "problem")
  process.stdout.write(
    json
      ? `${JSON.stringify({ object: "doctor", is_well: !hasProblem, findings }, null, 2)}\n`
      : reportText(findings, isColoured),
  )
  process.exit(hasProblem ? 1 : 0)
}
