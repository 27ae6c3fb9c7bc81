import { Effect } from "effect"
import {
  type Catalogue,
  definePlugin,
  type Endpoint,
  PluginError,
  provide,
  resolve,
  resolveAll,
  Tokens,
} from "../../core/index.ts"
import { adapterName } from "../../core/services/model-entry.ts"
import { command } from "./command.ts"
import { Settings } from "./settings.ts"
import { makeStaticIdentity } from "./static-identity.ts"

const unknownOf = (wanted: readonly string[] | undefined, known: readonly string[]) =>
  wanted?.find((one) => !known.includes(one))

/** Keys that reach nothing are mistakes: a misspelt model. */
const modelProblem = ({ keys }: Settings, { entries }: Catalogue): string | undefined => {
  const models = entries.map(({ id }) => id)
  for (const { name, models: wanted } of keys) {
    const model = unknownOf(wanted, models)
    if (model === undefined) continue
    const base = entries.find(({ id, adapters }) =>
      adapters.some((own) => adapterName(id, own) === model),
    )
    return base
      ? `the key '${name}' names '${model}', which is an adapter; keys go by the model, so name '${base.id}'`
      : `the key '${name}' names the unknown model '${model}'; models are ${models.join(", ")}`
  }
  return undefined
}

/** Keys that name no endpoint are mistakes, too. */
const scopeProblem = ({ keys }: Settings, endpoints: readonly Endpoint[]): string | undefined => {
  const scopes = ["*", ...endpoints.filter(({ access }) => access === "key").map(({ id }) => id)]
  for (const { name, scopes: wanted } of keys) {
    const scope = unknownOf(wanted, scopes)
    if (scope !== undefined)
      return `the key '${name}' has the unknown scope '${scope}'; scopes are ${scopes.join(", ")}`
  }
  return undefined
}

const refusal = (message: string) => new PluginError({ plugin: "identity-static", message })

export const plugin = definePlugin<Settings>({
  name: "identity-static",
  api: 1,
  about: "API keys in the config file, by their hashes: no accounts, no database.",
  settings: Settings,
  needs: [Tokens.catalogue, Tokens.log],
  provides: [Tokens.identity],
  commands: [command],
  create: (settings) => ({
    // all models are known by now, so that `rakit check` refuses what the server would
    register: (container) => {
      const problem = modelProblem(settings, resolve(container, Tokens.catalogue))
      if (problem !== undefined) throw refusal(problem)
    },
    start: (container) =>
      Effect.suspend(() => {
        // not before: endpoints of plugins that register later count, too
        const problem = scopeProblem(settings, resolveAll(container, Tokens.endpoints))
        if (problem !== undefined) return Effect.fail(refusal(problem))
        if (settings.keys.every(({ hash }) => hash === ""))
          resolve(container, Tokens.log).warn(
            "identity.no_keys",
            "the config file has no key, so every call is refused; make one with: npx rakit keys hash",
          )
        provide(container, Tokens.identity, makeStaticIdentity(settings))
        return Effect.void
      }),
  }),
})
