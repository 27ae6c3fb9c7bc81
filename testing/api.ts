import type { CallInput } from "../core/call/contract.ts"
import type { Json, Strings } from "../core/json.ts"
import type { Endpoint } from "../core/ports/endpoint.ts"
import type { CallPathFixture, FakeAnswer } from "./fakes/call-path.ts"

/** The endpoint that a request line reaches, with the parameters of its path and query. */
export interface Route {
  readonly endpoint: Endpoint
  readonly params: Strings
  readonly query: Strings
}

const paramsIn = (template: string, path: string): Strings | undefined => {
  const wanted = template.split("/")
  const given = path.split("/")
  if (wanted.length !== given.length) return undefined
  const params: Record<string, string> = {}
  for (const [i, part] of wanted.entries()) {
    const name = /^\{(\w+)\}$/.exec(part)?.[1]
    const text = given[i] ?? ""
    if (name === undefined ? part !== text : text === "") return undefined
    if (name !== undefined) params[name] = decodeURIComponent(text)
  }
  return params
}

/**
 * Finds the endpoint of a request line: `GET /v1/files/file-1/content?limit=5`. Throws when there
 * is none.
 */
export const routeOf = (endpoints: Iterable<Endpoint>, line: string): Route => {
  const [method = "", target = ""] = line.split(" ")
  const { pathname, searchParams } = new URL(target, "http://localhost")
  for (const endpoint of endpoints) {
    const params = endpoint.method === method ? paramsIn(endpoint.path, pathname) : undefined
    if (params) return { endpoint, params, query: Object.fromEntries(searchParams) }
  }
  throw new Error(`no endpoint is ${line}`)
}

export interface Answer extends FakeAnswer {
  // biome-ignore lint/suspicious/noExplicitAny: tests look into replies of many shapes
  readonly json: any
}

/**
 * `ask("POST /v1/files?limit=5", body)`: these endpoints behind the call path of a fixture. `more`
 * overrides the call's caller and so on.
 */
export const askerOf =
  (endpoints: Iterable<Endpoint>, fixture: Pick<CallPathFixture, "ask">) =>
  (line: string, body?: Json, more?: Partial<CallInput>): Promise<Answer> => {
    const { endpoint, params, query } = routeOf(endpoints, line)
    return fixture.ask(endpoint, body, { params, query, ...more })
  }
