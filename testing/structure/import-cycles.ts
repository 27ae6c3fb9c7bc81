import { dirname, join } from "node:path"
import { type Rule, type Source, sources, withoutComments } from "./sources.ts"

/**
 * What a module loads before it runs, as paths from the root; with `types`, also the modules of
 * which it takes only types.
 */
const loads = (source: Source, { types }: { readonly types: boolean }): readonly string[] =>
  [
    ...withoutComments(source.text).matchAll(
      /^(?:import|export)\b([^"';]*?\bfrom\s*|\s*)"(\.[^"]+)"/gm,
    ),
  ]
    .filter(([, clause = ""]) => types || !/^\s*type\b/.test(clause))
    .map(([, , name]) => join(dirname(source.path), name!))

const graphOf = (types: boolean): ReadonlyMap<string, readonly string[]> =>
  new Map(sources.map((source) => [source.path, loads(source, { types })]))

/** The modules on the way from a file back to itself, or undefined. */
const cycleThrough = (
  source: Source,
  types: boolean,
  graph: ReadonlyMap<string, readonly string[]>,
): readonly string[] | undefined => {
  const seen = new Set<string>()
  const back = (path: string, imported: readonly string[]): readonly string[] | undefined => {
    for (const next of imported) {
      if (next === source.path) return [path, next]
      if (seen.has(next)) continue
      seen.add(next)
      const rest = back(next, graph.get(next) ?? [])
      if (rest) return [path, ...rest]
    }
    return undefined
  }
  return back(source.path, loads(source, { types }))
}

const graphs: Record<string, ReturnType<typeof graphOf>> = {}

/** No module imports itself through others. `types`: imports of types alone count, too. */
export const importsInNoCircle =
  (isMeant: (path: string) => boolean, types: boolean): Rule =>
  (source) => {
    graphs[String(types)] ??= graphOf(types)
    const cycle = isMeant(source.path)
      ? cycleThrough(source, types, graphs[String(types)]!)
      : undefined
    return cycle ? [`imports itself: ${cycle.join(" -> ")}`] : []
  }
