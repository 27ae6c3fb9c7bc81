import type { Rule } from "./sources.ts"

/**
 * Words of an earlier vocabulary that nobody would search for: in halves, so that this file keeps
 * its own rule.
 */
const banned: readonly (readonly [string, string])[] = [
  ["hou" + "ses?", "deployment, deps or fixture"],
  ["de" + "sks?", "batch worker, driver or fixture"],
  ["pur" + "ses?", "hold tracker"],
  ["tra" + "ys?", "commit buffer"],
  ["sea" + "ts?", "permit"],
  ["sta" + "kes?", "hold"],
  ["to" + "ld", "reported, cancelled or given"],
  ["stra" + "ys?", "in-doubt call, or orphan"],
]

/** Whole words, and parts of identifiers: as in camelCase and snake_case. */
const partsOf = (text: string): ReadonlySet<string> =>
  new Set(
    text
      .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
      .replaceAll("_", " ")
      .match(/[A-Za-z]+/g)
      ?.map((word) => word.toLowerCase()),
  )

export const saysWhatTheFieldSays: Rule = ({ text }) => {
  const parts = [...partsOf(text)]
  return banned.flatMap(([form, instead]) =>
    parts
      .filter((part) => new RegExp(`^${form}$`).test(part))
      .map((part) => `says "${part}"; the field says ${instead}`),
  )
}

const openings: readonly (readonly [RegExp, string])[] = [
  [/^Answers\b/, 'begins with "Answers"; a function "Returns"'],
  [/^(?:Of|Those of|That of)\b/, "is a bare genitive; say what it is"],
]

const beginsDocstringsWell: Rule = ({ text }) =>
  [...text.matchAll(/\/\*\*\s*(?:\*\s+)?([^\n]+)/g)].flatMap(([, opening = ""]) =>
    openings
      .filter(([form]) => form.test(opening))
      .map(([, wrong]) => `the docstring "${opening.slice(0, 50)}" ${wrong}`),
  )

const saysByDefault: Rule = ({ text }) =>
  new RegExp(`\\bunless to${"ld"}\\b`).test(text) ? ['"unless ..." is "by default"'] : []

/** Docstrings of the wire and of code begin with what is returned or what it is. */
export const writesPlainDocstrings: Rule = (source) => [
  ...beginsDocstringsWell(source),
  ...saysByDefault(source),
]
