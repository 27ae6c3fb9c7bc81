import { Cause, Effect, Exit, Option } from "effect"
import type { CommandHost, RunCommand } from "../../../core/index.ts"
import type { Settings } from "../settings.ts"
import { openVectorStore } from "../vectors/open-vector-store.ts"
import { type Audit, audit } from "./audit.ts"
import { auditJson, auditText, isSoundAudit } from "./audit-text.ts"

const run = (
  configFile: string,
  account: string | undefined,
  { clock, openDatabase }: CommandHost,
): Effect.Effect<Audit, Error> =>
  Effect.scoped(
    Effect.gen(function* () {
      const write = (lines: string) => void process.stderr.write(lines)
      const { database, log, settings } = yield* openDatabase(
        "endpoint-retrieval",
        configFile,
        write,
      )
      const deps = { database, clock, log, settings: settings as Settings }
      return yield* audit(deps, yield* openVectorStore(deps, "command"), account)
    }),
  )

/** Exits with 1 when something is missing. */
export const auditCommand: RunCommand = async ({ options, config }, host) => {
  const account = options.account as string | undefined
  const exit = await Effect.runPromiseExit(run(config.file, account, host))
  if (Exit.isFailure(exit))
    throw Option.getOrElse(
      Cause.findErrorOption(exit.cause),
      () => new Error(Cause.pretty(exit.cause)),
    )
  process.stdout.write(options.json === true ? auditJson(exit.value) : auditText(exit.value))
  if (!isSoundAudit(exit.value)) process.exitCode = 1
}
