import { Result, type Schema } from "effect"
import { decodeTyped } from "../config/decode.ts"
import type { ConfigPath, Problem } from "../config/problems.ts"
import type { NamedPlugin } from "./load-plugins.ts"
import { type PlacedModel, problemOf } from "./models.ts"

/**
 * Decodes the `options` of model entries by the schemas that plugins have for their backends.
 * Returns the models, with values of the environment as the numbers and booleans that they are.
 * Entries of a backend without schemas stay as they are; the backend's own check looks at them.
 */
export const withOptions = (
  models: readonly PlacedModel[],
  plugins: readonly NamedPlugin[],
  fromEnvironment: ReadonlySet<string>,
): { readonly values: readonly PlacedModel[]; readonly problems: readonly Problem[] } => {
  const byBackend = new Map(
    plugins.flatMap(({ plugin }) => Object.entries(plugin.modelOptions ?? {})),
  )
  const problems: Problem[] = []
  const values = models.map((placed) => {
    const { model, at, plugin } = placed
    const schema = byBackend.get(model.backend)?.[model.task]
    if (schema === undefined) return placed
    const base: ConfigPath = plugin === undefined ? [...at, "options"] : []
    const decoded = decodeTyped(
      schema as Schema.Codec<unknown, unknown>,
      model.options,
      base,
      fromEnvironment,
    )
    if (Result.isSuccess(decoded))
      return {
        ...placed,
        model: { ...model, options: decoded.success.input as typeof model.options },
      }
    for (const { path, message, fix } of decoded.failure) {
      const field = ["options", ...path.slice(base.length)]
      problems.push({ ...problemOf(placed, field, message), fix })
    }
    return placed
  })
  return { values, problems }
}
