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
import { command } from "./command.ts"
import { Settings } from "./settings.ts"
import { makeStaticIdentity } from "./static-identity.ts"

const unknownOf = (wanted: readonly string[] | undefined, known: readonly string[]) =>
  wanted?.find((one) => !known.includes(one))

/** Keys that reach nothing are mistakes: a misspelt scope or model. */
const problemOf = (
  { keys }: Settings,
  endpoints: readonly Endpoint[],
  { entries }: Catalogue,
): string | undefined => {
  const scopes = ["*", ...endpoints.filter(({ access }) => access === "key").map(({ id }) => id)]
  const models = entries.map(({ id }) => id)
  for (const key of keys) {
    const scope = unknownOf(key.scopes, scopes)
    if (scope !== undefined)
      return `the key '${key.name}' has the unknown scope '${scope}'; scopes are ${scopes.join(", ")}`
    const model = unknownOf(key.models, models)
    if (model !== undefined)
      return `the key '${key.name}' names the unknown model '${model}'; models are ${models.join(", ")}`
  }
  return undefined
}

export const plugin = definePlugin<Settings>({
  name: "identity-static",
  api: 1,
  about: "API keys in the config file, by their hashes: no accounts, no database.",
  settings: Settings,
  needs: [Tokens.catalogue, Tokens.log],
  provides: [Tokens.identity],
  commands: [command],
  create: (settings) => ({
    start: (container) =>
      Effect.suspend(() => {
        const problem = problemOf(
          settings,
          resolveAll(container, Tokens.endpoints),
          resolve(container, Tokens.catalogue),
        )
        if (problem !== undefined)
          return Effect.fail(new PluginError({ plugin: "identity-static", message: problem }))
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
