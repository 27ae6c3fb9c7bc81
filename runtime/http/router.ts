import type { Strings } from "../../core/json.ts"
import type { Exchange } from "./exchange.ts"

/** Serves a request, to the end of its call. */
export type Serve = (exchange: Exchange) => void | Promise<void>

export interface Route {
  readonly method: string
  /** `/v1/models/{id}`: a parameter is one segment. */
  readonly path: string
  readonly serve: (exchange: Exchange, params: Strings) => void | Promise<void>
}

export interface Router {
  /** The first route of this method and path, bound to its parameters. */
  find(method: string, path: string): Serve | undefined
  /** All routes of this path. */
  at(path: string): readonly Route[]
}

/** A server that answers GET answers HEAD. */
export const methodsOf = ({ method }: Pick<Route, "method">): readonly string[] =>
  method === "GET" ? ["HEAD", "GET"] : [method]

const literal = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")

const parameter = /\{([^}]+)\}/

/** The path may end in a slash. Upper and lower case differ. */
const patternOf = (path: string): RegExp => {
  const pieces = path.split(parameter)
  const source = pieces.map((piece, index) => (index % 2 ? "([^/]+)" : literal(piece))).join("")
  return new RegExp(`^${source.replace(/\/$/, "")}/?$`)
}

const noParams: Strings = {}

const compile = (route: Route) => {
  const names = route.path.split(parameter).filter((_, index) => index % 2)
  const pattern = patternOf(route.path)
  const match = (path: string): Strings | undefined => {
    const found = pattern.exec(path)
    if (!found) return undefined
    return Object.fromEntries(
      names.map((name, index) => [name, decodeURIComponent(found[index + 1]!)]),
    )
  }
  return { route, methods: methodsOf(route), match }
}

/** The first route that fits wins. Most calls go to a path without parameters: those are looked up. */
export const makeRouter = (routes: readonly Route[]): Router => {
  const compiled = routes.map(compile)
  const exact = new Map<string, Serve>()
  for (const { route, methods } of compiled.filter(({ route }) => !route.path.includes("{")))
    for (const method of methods) {
      const key = `${method} ${route.path}`
      if (!exact.has(key)) exact.set(key, (exchange) => route.serve(exchange, noParams))
    }
  return {
    find: (method, path) => {
      const known = exact.get(`${method} ${path}`)
      if (known) return known
      for (const { route, methods, match } of compiled) {
        const params = methods.includes(method) ? match(path) : undefined
        if (params) return (exchange) => route.serve(exchange, params)
      }
      return undefined
    },
    at: (path) => compiled.filter(({ match }) => match(path)).map(({ route }) => route),
  }
}
