import type { Json } from "../../../core/json.ts"

/** Arguments are an object, whatever else their schema says. Nothing said: there are none. `undefined`: they could never be an object. */
export const argumentsSchema = (parameters: Json | undefined): Json | undefined => {
  if (parameters === undefined)
    return { type: "object", properties: {}, additionalProperties: false }
  if (parameters === true) return { type: "object" }
  if (typeof parameters !== "object" || parameters === null || Array.isArray(parameters))
    return undefined
  const { type } = parameters as { readonly type?: Json }
  const types: readonly Json[] = Array.isArray(type)
    ? type
    : type === undefined
      ? ["object"]
      : [type]
  return types.includes("object")
    ? { ...(parameters as Readonly<Record<string, Json>>), type: "object" }
    : undefined
}
