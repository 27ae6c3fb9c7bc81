import type { Rule } from "./sources.ts"

/**
 * `core/services` is what the kernel lends, `core/ports` what plugins provide; the contract of the
 * call path stands beside the path.
 */
const sections = {
  "// -- kernel services": ["./services/", "./call/contract.ts"],
  "// -- what plugins provide": ["./ports/"],
} as const

export const keepsTokensInSections: Rule = ({ path, text }) => {
  if (path !== "core/tokens.ts") return []
  const fileOf = new Map(
    [...text.matchAll(/^import type \{([^}]*)\} from "([^"]+)"/gm)].flatMap(([, names, file]) =>
      names!.match(/\w+/g)!.map((name) => [name, file!]),
    ),
  )
  return Object.entries(sections).flatMap(([head, folders]) => {
    const section = text.split(head)[1]?.split("\n  // -- ")[0]
    if (section === undefined) return [`has no section "${head}"`]
    return [...section.matchAll(/(\w+): token<(\w+)/g)]
      .filter(([, , type]) => !folders.some((folder) => fileOf.get(type!)?.startsWith(folder)))
      .map(([, token, type]) => `${token} is a ${type} of ${fileOf.get(type!)}: not in ${folders}`)
  })
}
