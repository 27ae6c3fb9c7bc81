import { Effect, Schema } from "effect"
import { parseTerm } from "./words/lists.ts"

const or = <S extends Schema.Top>(schema: S, value: S["Encoded"]) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** A line of a word list. */
const Term = Schema.String.check(
  Schema.makeFilter((line: string) => {
    const term = parseTerm(line)
    return typeof term !== "string" || term
  }),
)
const Terms = or(Schema.Array(Term).check(Schema.isMaxLength(10_000)), [])

/** `report` counts what would be refused; `off` does not look for it. */
const Mode = Schema.Literals(["refuse", "report", "off"])
const Probability = Schema.Number.check(Schema.isBetween({ minimum: 0, maximum: 1 }))

export const Settings = Schema.Struct({
  /** A folder with word lists that stand in for the plugin's own; empty: those. */
  lists: or(Schema.String, ""),
  /** Terms beside those of the lists. */
  extra: or(Schema.Struct({ minors: Terms, public_figures: Terms, nsfw: Terms }), {}),
  /** Harmless phrases: what they cover counts for no category but `minors`. */
  allow: Terms,
  /** What happens to prompts and pictures of a category; those of `minors` are refused. */
  categories: or(
    Schema.Struct({ public_figures: or(Mode, "refuse"), nsfw: or(Mode, "refuse") }),
    {},
  ),
  /** The probability of a class from which on a picture is `nsfw`; 1: never. */
  thresholds: or(
    Schema.Struct({
      porn: or(Probability, 0.6),
      hentai: or(Probability, 0.85),
      sexy: or(Probability, 0.95),
    }),
    {},
  ),
})
export type Settings = typeof Settings.Type
