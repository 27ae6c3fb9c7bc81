import { existsSync } from "node:fs"
import { join } from "node:path"
import { Deferred, Effect, Exit } from "effect"
import type { Role } from "../../core/services/deployment.ts"
import { resolve, resolveOptional, Tokens } from "../../core/tokens.ts"
import { type AssembledDeployment, assemble } from "../boot/assemble.ts"
import { serveDeployment } from "../boot/serve-deployment.ts"
import { type LoadedConfig, loadConfig } from "../config/load.ts"
import { makePullProgress } from "../progress.ts"
import { gathering, makeLog } from "../services/log.ts"
import { version } from "../version.ts"
import { listeningLine, readyText, startingLine } from "./banner.ts"
import { errorOf, refuse } from "./refuse.ts"
import { onStopSignal } from "./signals.ts"

const say = (text: string) => void process.stdout.write(text)

/** The reader of our output may close it (a pager, a log collector that restarts): keep serving. */
const outliveReaders = () => {
  for (const stream of [process.stdout, process.stderr]) stream.on("error", () => {})
}

const cheapestChatModel = (deployment: AssembledDeployment): string | undefined =>
  resolve(deployment.container, Tokens.catalogue)
    .entries.filter(({ task }) => task === "chat")
    .sort((a, b) => Number(a.price.output - b.price.output))[0]?.id

const readyBanner = (deployment: AssembledDeployment, baseUrl: string): string => {
  const { container } = deployment
  const credentialsFile = join(resolve(container, Tokens.deployment).dataDir, "credentials.json")
  const account = resolveOptional(container, Tokens.firstAccount)?.created
  return readyText({
    name: deployment.config.deployment.name,
    version,
    baseUrl,
    credentialsFile: existsSync(credentialsFile) ? credentialsFile : undefined,
    account,
    chatModel: cheapestChatModel(deployment),
    hasDashboard: deployment.endpoints.some((endpoint) => endpoint.path === "/dashboard"),
    wasGiven: (secret) => Object.values(process.env).includes(secret),
  })
}

/**
 * Serves until it is interrupted, then drains open requests. Fails when it can't start, or when no
 * model can be opened.
 */
const serving = (config: LoadedConfig, role: Role) =>
  Effect.scoped(
    Effect.gen(function* () {
      const hopeless = yield* Deferred.make<never, Error>()
      const { deployment: settings } = config
      const progress = makePullProgress(process.stderr)
      const pretty = process.stderr.isTTY === true
      const write = (lines: string) => progress.write(config.mask.line(lines))
      const log = makeLog({
        level: settings.log.level,
        pretty,
        destination: pretty ? { write } : gathering(write),
      })
      const deployment = yield* assemble(config, role, log)
      const named = { name: settings.name, version }
      let baseUrl = ""
      const server = yield* serveDeployment(deployment, {
        version,
        onListening: ({ url }) => say(startingLine({ ...named, baseUrl: url })),
        onStarted: ({ url }) => {
          baseUrl = url
          say(listeningLine({ ...named, baseUrl }))
        },
        pulls: progress,
        onModels: (failed) => {
          progress.stop()
          const { entries } = resolve(deployment.container, Tokens.catalogue)
          if (failed.length > 0 && failed.length === entries.length)
            return Deferred.doneUnsafe(
              hopeless,
              Effect.fail(
                new Error(`No model could be opened:\n${failureList(deployment, failed)}`),
              ),
            )
          if (failed.length > 0)
            say(
              `Not all models could be opened; the others are served:\n${config.mask.text(failureList(deployment, failed))}\n`,
            )
          else if (entries.length > 0) say("All models are ready.\n")
          say(readyBanner(deployment, baseUrl))
        },
      })
      yield* Effect.ensuring(
        Deferred.await(hopeless),
        Effect.suspend(() =>
          server.drain(settings.server.drainTimeoutMs, settings.server.drainDelayMs),
        ),
      )
    }),
  )

const failureList = (deployment: AssembledDeployment, failed: readonly string[]): string =>
  failed
    .map((id) => {
      const state = resolve(deployment.container, Tokens.catalogue).state(id)
      return `  ${id}: ${state.state === "failed" ? state.reason : state.state}`
    })
    .join("\n")

/** Runs the server and then ends the process: it never returns. */
export const serve = async (file: string, role: Role): Promise<void> => {
  outliveReaders()
  const stop = new AbortController()
  onStopSignal((signal) => {
    process.stderr.write(`${signal}: finishing open requests; once more ends at once\n`)
    stop.abort()
  })
  let config: LoadedConfig
  try {
    config = loadConfig(file, process.env)
  } catch (error) {
    return refuse(error)
  }
  const exit = await Effect.runPromiseExit(serving(config, role), { signal: stop.signal })
  if (Exit.isFailure(exit) && !stop.signal.aborted) return refuse(errorOf(exit), config.mask)
  process.exit(0)
}
