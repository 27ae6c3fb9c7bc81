import { Schema } from "effect"
import { setting } from "../../core/index.ts"
import { parseTerm } from "./words/lists.ts"

/** A line of a word list. */
const Term = Schema.String.check(
  Schema.makeFilter((line: string) => {
    const term = parseTerm(line)
    return typeof term !== "string" || term
  }),
)
const terms = (description: string) =>
  setting(Schema.Array(Term).check(Schema.isMaxLength(10_000)), [], description)

const mode = (category: string) =>
  setting(
    Schema.Literals(["refuse", "report", "off"]),
    "refuse",
    `${category}: \`report\` counts what would be refused; \`off\` does not look for it.`,
  )
const threshold = (value: number, name: string) =>
  setting(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 })),
    value,
    `The probability of the class ${name} from which on a picture is refused; 1: never.`,
  )

export const Settings = Schema.Struct({
  lists: setting(
    Schema.String,
    "",
    "A folder with word lists that stand in for the plugin's own; empty: those.",
  ),
  extra: setting(
    Schema.Struct({
      minors: terms("Terms of the category `minors`."),
      public_figures: terms("Names of the category `public_figures`."),
      nsfw: terms("Terms of the category `nsfw`."),
    }),
    {},
    "Terms beside those of the lists.",
  ),
  allow: terms("Harmless phrases: what they cover counts for no category but `minors`."),
  categories: setting(
    Schema.Struct({ public_figures: mode("Names of people"), nsfw: mode("Nudity and sex") }),
    {},
    "What happens to prompts and pictures of a category; those of `minors` are refused.",
  ),
  thresholds: setting(
    Schema.Struct({
      porn: threshold(0.6, "porn"),
      hentai: threshold(0.85, "hentai"),
      sexy: threshold(0.95, "sexy"),
    }),
    {},
    "The probability of a class from which on a picture is `nsfw`; 1: never.",
  ),
})
export type Settings = typeof Settings.Type
