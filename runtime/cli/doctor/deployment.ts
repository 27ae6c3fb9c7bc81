import { createServer } from "node:net"
import { Effect, Stream } from "effect"
import { PluginError } from "../../../core/errors.ts"
import type { Database } from "../../../core/ports/database.ts"
import type { Storage } from "../../../core/ports/storage.ts"
import type { Deployment } from "../../../core/services/deployment.ts"
import { randomText } from "../../../core/services/ids.ts"
import type { ModelEntry } from "../../../core/services/model-entry.ts"
import { resolve, resolveOptional, type Token, Tokens } from "../../../core/tokens.ts"
import type { AssembledDeployment } from "../../boot/assemble.ts"
import { filesOf, localTrouble } from "../../boot/open-models.ts"
import { describeModels, modelTrouble, shortfall } from "../../boot/served-models.ts"
import { findDevices } from "../devices.ts"
import { quotable } from "../table.ts"
import { mustHaveData, startWanted } from "../with-deployment.ts"
import { type Finding, ok, problem, sizeText, warning } from "./finding.ts"
import { clock } from "./machine.ts"

const reasonOf = (error: unknown): string =>
  error instanceof PluginError
    ? `${error.plugin}: ${error.message}`
    : error instanceof Error
      ? error.message
      : String(error)

/** What is wrong with listening there; undefined when nothing is. */
const listenTrouble = (host: string, port: number): Promise<string | undefined> =>
  new Promise((done) => {
    const server = createServer()
    server.once("error", (error: NodeJS.ErrnoException) => done(error.code ?? error.message))
    server.listen(port, host, () => server.close(() => done(undefined)))
  })

const askMs = 5_000

/** The status that a server of ours reports at this port. */
const statusAt = async (port: number): Promise<string | undefined> => {
  try {
    const reply = await fetch(`http://127.0.0.1:${port}/readyz`, {
      signal: AbortSignal.timeout(askMs),
    })
    const { status } = (await reply.json()) as { readonly status?: unknown }
    // any program may answer there
    return typeof status === "string" ? quotable(status) : undefined
  } catch {
    return undefined
  }
}

export const port = async ({ config }: AssembledDeployment): Promise<Finding> => {
  const { host, port: number } = config.deployment.server
  const trouble = await listenTrouble(host, number)
  if (trouble === undefined) return ok("port", `${host}:${number} is free`)
  const fix = "stop what uses it, or set server.port (PORT) to another."
  if (trouble !== "EADDRINUSE")
    return problem("port", `nothing can listen on ${host}:${number} (${trouble})`, fix)
  const status = await statusAt(number)
  if (status === undefined) return problem("port", `another program uses port ${number}`, fix)
  const detail = `a Rakit server answers on port ${number}: ${status}`
  return status === "ready"
    ? ok("port", detail)
    : warning("port", detail, `curl http://127.0.0.1:${number}/readyz says why.`)
}

/** Asks for its version and its time. */
const answers = (database: Database): Effect.Effect<readonly Finding[]> =>
  database
    .run(() =>
      database
        .queries()
        .selectNoFrom(({ fn }) => [fn<Date>("now").as("now"), fn<string>("version").as("version")])
        .executeTakeFirstOrThrow(),
    )
    .pipe(
      Effect.map(({ now, version }) => [
        ok("database", version.replace(/ \(.*| on .*/, "")),
        clock(Date.now(), new Date(now).getTime()),
      ]),
      Effect.catch((error) =>
        Effect.succeed([
          problem("database", reasonOf(error), "see docs/troubleshooting.md."),
          clock(Date.now()),
        ]),
      ),
    )

/** Writes a blob, reads it and removes it. */
const keeps = (storage: Storage): Effect.Effect<Finding> => {
  const key = `doctor/${randomText()}`
  const bytes = Buffer.from(key)
  return storage.put(key, Stream.make(bytes), bytes.length).pipe(
    Effect.andThen(Stream.runCollect(storage.get(key))),
    Effect.map((pieces) =>
      Buffer.concat([...pieces]).equals(bytes)
        ? ok("storage", "a blob was written, read and removed")
        : problem("storage", "it returned other bytes than were written", "check the disk."),
    ),
    Effect.ensuring(Effect.ignore(storage.remove(key))),
    Effect.catch((error) =>
      Effect.succeed(problem("storage", reasonOf(error), "see docs/troubleshooting.md.")),
    ),
  )
}

/** Starts database and storage and asks each; makes no data where there are none. */
export const services = (deployment: AssembledDeployment): Effect.Effect<readonly Finding[]> =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* startWanted(deployment, [Tokens.database, Tokens.storage] as Token<unknown>[])
      const database = resolveOptional(deployment.container, Tokens.database)
      const storage = resolveOptional(deployment.container, Tokens.storage)
      return [
        ...(database ? yield* answers(database) : [clock(Date.now())]),
        ...(storage ? [yield* keeps(storage)] : []),
      ]
    }),
  ).pipe(
    Effect.catch((error) =>
      Effect.succeed([
        problem("services", reasonOf(error), "see docs/troubleshooting.md."),
        clock(Date.now()),
      ]),
    ),
    (asked) =>
      mustHaveData(deployment).pipe(
        Effect.match({ onSuccess: () => true, onFailure: () => false }),
        Effect.flatMap((hasData) =>
          hasData
            ? asked
            : Effect.succeed([
                ok("data", "none yet: the first start makes them"),
                clock(Date.now()),
              ]),
        ),
      ),
  )

const oneModel = (deployment: AssembledDeployment, entry: ModelEntry, known: boolean) =>
  Effect.gen(function* () {
    const name = `model ${entry.id}`
    const all = filesOf(entry)
    const found = yield* Effect.forEach(all, ({ sources }) => deployment.modelFiles.find(sources))
    const here = found.filter((file) => file !== undefined)
    const absent = all.filter((_, at) => found[at] === undefined)
    // first: a pull would stop at those that nothing pulls
    for (const files of absent) {
      const trouble = yield* localTrouble(deployment, files)
      if (trouble !== undefined) {
        const fix = "put the model's file there, or name another source."
        return { files: here, finding: problem(`model ${files.id}`, trouble, fix) }
      }
    }
    const [first] = absent
    if (first) {
      const fix = `rakit models pull ${entry.id} -c ${deployment.config.file}; the first start does it, too.`
      const finding = warning(`model ${first.id}`, "its files are not here", fix)
      return { files: here, finding }
    }
    const trouble = known ? undefined : yield* modelTrouble(deployment, entry)
    if (trouble !== undefined)
      return {
        files: here,
        finding: problem(
          name,
          trouble,
          "mend what it says, or name files that this backend opens.",
        ),
      }
    const { served } = resolve(deployment.container, Tokens.catalogue)
    const less = known ? shortfall(entry, served(entry)) : undefined
    const size = sizeText(here.reduce((sum, { bytes }) => sum + bytes, 0))
    return { files: here, finding: ok(name, less ? `${size}; serves ${less}` : size) }
  })

/** Findings for each model, and the bytes of the files that are here. */
export const models = (deployment: AssembledDeployment) =>
  Effect.gen(function* () {
    const { entries } = resolve(deployment.container, Tokens.catalogue)
    const known = yield* describeModels(deployment)
    const found = yield* Effect.forEach(entries, (entry) =>
      oneModel(deployment, entry, known.includes(entry)),
    )
    // several entries may share a file
    const byPath = new Map(
      found.flatMap(({ files }) => files.map((file) => [file.path, file.bytes])),
    )
    const bytes = [...byPath.values()].reduce((sum, size) => sum + size, 0)
    return { findings: found.map(({ finding }) => finding), bytes }
  })

export const drivers = (deployment: AssembledDeployment): Effect.Effect<readonly Finding[]> =>
  Effect.map(findDevices(deployment), ({ missing, shown }) => {
    const wanted = [
      ...new Set(
        resolve(deployment.container, Tokens.catalogue).entries.map(({ backend }) => backend),
      ),
    ]
    if (missing.length > 0)
      return missing.map((line) => warning("drivers", line, "see docs/webgpu.md."))
    return [ok("drivers", wanted.length > 0 ? wanted.map(shown).join(", ") : "no model is served")]
  })

/** What clients and mails are sent to. */
export const address = (deployment: AssembledDeployment): Finding => {
  const { baseUrl } = resolve(deployment.container, Tokens.deployment) as Deployment
  const { publicUrl } = deployment.config.deployment
  return publicUrl
    ? ok("address", baseUrl)
    : warning(
        "address",
        `links in mails lead to ${baseUrl}`,
        "set publicUrl (PUBLIC_URL) to the address that users see.",
      )
}
