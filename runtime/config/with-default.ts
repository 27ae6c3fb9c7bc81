import { Effect, Schema } from "effect"

/** A key that may be left out; its default and description are in the JSON schema. */
export const withDefault = <S extends Schema.Top>(
  schema: S,
  value: S["Encoded"],
  description?: string,
) =>
  (
    (schema as Schema.Top).annotate({
      default: value,
      ...(description !== undefined && { description }),
    }) as S
  ).pipe(Schema.withDecodingDefaultKey<S>(Effect.succeed(value)))
