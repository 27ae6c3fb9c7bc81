import { type Rule, withoutComments } from "./sources.ts"

const listed = (text: string, key: string): readonly string[] =>
  [
    ...(new RegExp(`\\b${key}: \\[([^\\]]*)\\]`).exec(text)?.[1] ?? "").matchAll(/Tokens\.(\w+)/g),
  ].map(([, token]) => token!)

const used = (text: string, call: string): readonly string[] =>
  [...text.matchAll(new RegExp(`\\b${call}\\(\\s*container,\\s*Tokens\\.(\\w+)`, "g"))].map(
    ([, token]) => token!,
  )

/**
 * The lists of a plugin, each with the call that it declares. A need may also be that of the
 * kernel: migrations need the database.
 */
const declarations = { needs: "resolve", optional: "resolveOptional", provides: "provide" } as const

/**
 * What a plugin asks the container for, and what it gives it, is what it declares: boot order and
 * `rakit check` rely on it.
 */
export const declaresWhatItUses: Rule = ({ path, text }) => {
  if (!/^plugins\/[^/]+\/plugin\.ts$/.test(path)) return []
  const code = withoutComments(text)
  return Object.entries(declarations).flatMap(([key, call]) => {
    const [declared, asked] = [listed(code, key), used(code, call)]
    // `many` tokens may be asked for without a word, as an endpoint looks at those of others
    const all = key === "optional" ? used(code, "resolveAll") : []
    return [
      ...asked
        .filter((token) => !declared.includes(token))
        .map((token) => `calls ${call} for ${token}, which is missing in \`${key}\``),
      ...declared
        .filter((token) => !asked.includes(token) && !all.includes(token))
        .map((token) => `lists ${token} in \`${key}\`, but never calls ${call} for it`),
    ]
  })
}
