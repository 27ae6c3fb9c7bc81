import { Cause, Effect, Option } from "effect"
import type { ModelEntry, ServedModel } from "../../core/services/model-entry.ts"
import { resolve, Tokens } from "../../core/tokens.ts"
import type { AssembledDeployment } from "./assemble.ts"

/** What went wrong, in the words of the error. */
export const reasonOf = (cause: Cause.Cause<{ readonly message: string }>): string =>
  Option.match(Cause.findErrorOption(cause), {
    onNone: () => Cause.pretty(cause),
    onSome: (error) => error.message,
  })

const describeOne = ({ backends, modelFiles, container }: AssembledDeployment, entry: ModelEntry) =>
  Effect.gen(function* () {
    const { id, task, options, modalities, contextTokens, sources } = entry
    const backend = backends.find(({ name }) => name === entry.backend)
    if (!backend?.describe) return false
    const found = sources.length === 0 ? { path: "" } : yield* modelFiles.find(sources)
    if (!found) return false
    const adapters = yield* Effect.forEach(entry.adapters, (own) =>
      Effect.map(modelFiles.find(own.sources), (files) =>
        files ? [{ id: own.id, path: files.path }] : [],
      ),
    )
    const request = {
      id,
      task,
      path: found.path,
      adapters: adapters.flat(),
      options,
      modalities,
      contextTokens,
    }
    const abilities = yield* backend.describe(request)
    if (abilities) resolve(container, Tokens.catalogue).describe(id, abilities)
    return abilities !== undefined
  })

/** Returns why a model could not be opened, as far as the headers of its files say. */
export const modelTrouble = (
  deployment: AssembledDeployment,
  entry: ModelEntry,
): Effect.Effect<string | undefined> =>
  describeOne(deployment, entry).pipe(
    Effect.as(undefined),
    Effect.catchCause((cause) => Effect.succeed(reasonOf(cause))),
  )

/**
 * Finds out what the models whose files are here can do, before any is opened. Returns the entries
 * of which that is known; what is wrong with a file is said when it is opened.
 */
export const describeModels = (
  deployment: AssembledDeployment,
): Effect.Effect<readonly ModelEntry[]> =>
  Effect.map(
    Effect.forEach(resolve(deployment.container, Tokens.catalogue).entries, (entry) =>
      describeOne(deployment, entry).pipe(
        Effect.catchCause(() => Effect.succeed(false)),
        Effect.map((isKnown) => (isKnown ? [entry] : [])),
      ),
    ),
    (known) => known.flat(),
  )

const beyond = (promised: readonly string[], served: readonly string[]) =>
  promised.filter((name) => !served.includes(name))

/** What config promises of a model and the model behind it does not serve. */
export const shortfall = (entry: ModelEntry, served: ServedModel): string | undefined => {
  const tokens = (count: number) => count.toLocaleString("en")
  const modalities = beyond(entry.modalities, served.modalities)
  const capabilities = beyond(entry.capabilities, served.capabilities)
  const parts = [
    served.contextTokens < entry.contextTokens &&
      `a window of ${tokens(served.contextTokens)} tokens instead of ${tokens(entry.contextTokens)}`,
    served.maxOutputTokens < entry.maxOutputTokens &&
      `answers of up to ${tokens(served.maxOutputTokens)} tokens instead of ${tokens(entry.maxOutputTokens)}`,
    modalities.length > 0 && `no ${modalities.join(", ")} input`,
    capabilities.length > 0 && `no ${capabilities.join(", ")}`,
    entry.price.image > 0n && served.price.image === 0n && "no price for images",
  ].filter((part) => part !== false)
  return parts.length > 0 ? parts.join("; ") : undefined
}
