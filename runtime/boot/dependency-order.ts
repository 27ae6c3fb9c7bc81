import type { Token } from "../../core/tokens.ts"
import type { Problem } from "../config/problems.ts"
import type { NamedPlugin } from "./load-plugins.ts"
import type { MissingProvider } from "./suggest-plugins.ts"

/** The tokens whose providers start before this plugin. */
const before = ({ plugin }: NamedPlugin): readonly Token<unknown>[] => [
  ...plugin.needs,
  ...(plugin.optional ?? []),
]

const names = (plugins: readonly NamedPlugin[]) => plugins.map((p) => `'${p.key}'`).join(" and ")

const twoProviders = (plugins: readonly NamedPlugin[]): readonly Problem[] => {
  const providers = new Map<string, NamedPlugin[]>()
  for (const named of plugins)
    for (const token of named.plugin.provides)
      if (token.arity === "one")
        providers.set(token.name, [...(providers.get(token.name) ?? []), named])
  return [...providers].flatMap(([name, all]) =>
    all.length > 1
      ? [
          {
            path: ["plugins", all[1]!.key],
            message: `'${name}' is provided twice, by ${names(all)}`,
            fix: "keep one of them.",
          },
        ]
      : [],
  )
}

const missingProviders = (
  plugins: readonly NamedPlugin[],
  kernel: ReadonlySet<string>,
): readonly MissingProvider[] => {
  const provided = new Set([
    ...kernel,
    ...plugins.flatMap(({ plugin }) => plugin.provides.map((token) => token.name)),
  ])
  return plugins.flatMap(({ key, plugin }) =>
    plugin.needs
      .filter((token) => !provided.has(token.name) && token.arity === "one")
      .map((token) => ({
        path: ["plugins", key],
        message: `needs '${token.name}' (${token.about}), which no plugin here provides`,
        token,
      })),
  )
}

/** Topological sort (Kahn, 1962): providers first, otherwise in the order of the file. */
const sort = (
  plugins: readonly NamedPlugin[],
): { readonly sorted: readonly NamedPlugin[]; readonly rest: readonly NamedPlugin[] } => {
  const sorted: NamedPlugin[] = []
  let rest = [...plugins]
  for (;;) {
    const open = new Set(rest.flatMap(({ plugin }) => plugin.provides.map((token) => token.name)))
    const next = rest.find((named) =>
      before(named).every(
        (token) =>
          !open.has(token.name) ||
          named.plugin.provides.some((own) => own.name === token.name && own.arity === "many"),
      ),
    )
    if (!next) return { sorted, rest }
    sorted.push(next)
    rest = rest.filter((p) => p !== next)
  }
}

/** Follows dependencies until a plugin repeats. */
const cycleOf = (rest: readonly NamedPlugin[]): readonly NamedPlugin[] => {
  const trail: NamedPlugin[] = []
  let at = rest[0]
  while (at && !trail.includes(at)) {
    trail.push(at)
    const needs = new Set(before(at).map((token) => token.name))
    at = rest.find(({ plugin }) => plugin.provides.some((token) => needs.has(token.name)))
  }
  return at ? trail.slice(trail.indexOf(at)) : trail
}

/** Returns the plugins in starting order, or the problems that prevent one. */
export const orderPlugins = (
  plugins: readonly NamedPlugin[],
  kernel: ReadonlySet<string>,
): {
  readonly order: readonly NamedPlugin[]
  readonly problems: readonly (Problem | MissingProvider)[]
} => {
  const problems = [...twoProviders(plugins), ...missingProviders(plugins, kernel)]
  if (problems.length > 0) return { order: [], problems }
  const { sorted, rest } = sort(plugins)
  if (rest.length === 0) return { order: sorted, problems: [] }
  const cycle = cycleOf(rest)
  const round = [...cycle, cycle[0]!].map((p) => p.key).join(" -> ")
  return {
    order: [],
    problems: [
      {
        path: ["plugins", cycle[0]!.key],
        message: `these plugins need each other: ${round}`,
        fix: "break the cycle: one of them must resolve the other's service later, or not at all.",
      },
    ],
  }
}

/** Returns the providers of the `wanted` tokens and all their dependencies, in starting order. */
export const withDependencies = <P extends NamedPlugin>(
  order: readonly P[],
  wanted: readonly Token<unknown>[],
): readonly P[] => {
  const needed = new Set(wanted.map((token) => token.name))
  const kept: P[] = []
  for (const named of [...order].reverse())
    if (named.plugin.provides.some((token) => needed.has(token.name))) {
      kept.unshift(named)
      for (const token of before(named)) needed.add(token.name)
    }
  return kept
}
