import { readFileSync } from "node:fs"
import { join } from "node:path"
import { home, isCode, isTest, type Rule, withoutComments } from "./sources.ts"

const vague = new Set(["utils", "common", "helpers", "misc", "types", "manager"])
export const isNamedWell: Rule = ({ path }) =>
  path
    .split("/")
    .filter((part) => vague.has(part.replace(/\..*$/, "")))
    .map((part) => `"${part}" says nothing; name what it is for`)

/**
 * A worker's task is found by its default export, a tool's config too; plugins from outside are
 * loaded by name.
 */
const mayExportDefault = /(-job\.ts|\.config\.ts|\.test\.ts|^examples\/.*\/plugin\.ts)$/
export const exportsByName: Rule = ({ path, text }) =>
  mayExportDefault.test(path) || !/^export default\b/m.test(withoutComments(text))
    ? []
    : [
        "has a default export; exports are named (but for worker tasks, in *-job.ts, and config files)",
      ]

export const isShort: Rule = ({ text }) => {
  const lines = text.trimEnd().split("\n").length
  return lines > 300 ? [`has ${lines} lines; 300 is the limit, under 90 the aim`] : []
}

const isFunctionHead = (line: string): boolean =>
  /(=>|\bfunction\b.*\)|^\s*(async |static |override )*\*?#?\w+(<.*>)?\(.*\)(: .+)?) \{$/.test(
    line,
  ) && !/^\s*(\} )?(if|for|while|switch|catch|else|do)\b/.test(line)

/** The formatter puts the end of a function at its start's indentation, so no parser is needed. */
export const hasShortFunctions: Rule = ({ path, text }) => {
  if (isTest(path)) return []
  const lines = text.split("\n")
  return lines.flatMap((line, start) => {
    if (!isFunctionHead(line)) return []
    const indent = /^ */.exec(line)![0]
    const length = lines.slice(start + 1).findIndex((next) => next.startsWith(`${indent}}`)) + 2
    return length > 70
      ? [
          `line ${start + 1} begins a function of ${length} lines; 70 is the limit, under 40 the aim`,
        ]
      : []
  })
}

export const isFinished: Rule = ({ text }) =>
  [...text.matchAll(/\b(?:TO|FIX|XX)(?:DO|ME|X)\b/g)].map(
    ([mark]) => `holds a ${mark}; do it, or write an issue`,
  )

/** The server has one clock; a browser has its own. */
const clocks = ["core/services/clock.ts", "plugins/dashboard/web/clock.js"]
export const asksTheClock: Rule = ({ path, text }) => {
  if (isTest(path) || !/^(core|plugins)\//.test(path) || clocks.includes(path)) return []
  return /\bDate\.now\(|\bnew Date\(\)/.test(withoutComments(text)) && isCode(path)
    ? ["takes the time by itself; time comes from the Clock service or a parameter"]
    : []
}

const knownEffects = new Set(
  /`Effect`: ([\w,\s]+)/
    .exec(readFileSync(join(home, "CONTRIBUTING.md"), "utf8"))?.[1]
    ?.match(/\w+/g),
)
export const usesTheKnownEffects: Rule = ({ path, text }) =>
  isTest(path)
    ? []
    : [...new Set(withoutComments(text).match(/\bEffect\.[a-z]\w*/g))]
        .filter((name) => !knownEffects.has(name.replace("Effect.", "")))
        .map(
          (name) =>
            `uses ${name}, which is not on CONTRIBUTING.md's list; take one that is, or add it there`,
        )
