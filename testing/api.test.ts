import { Effect } from "effect"
import { expect, it } from "vitest"
import { PageQuery } from "../core/list.ts"
import { defineEndpoint, type Endpoint } from "../core/ports/endpoint.ts"
import { askerOf, routeOf } from "./api.ts"
import { callPathFixture } from "./fakes/call-path.ts"

const endpoint = (method: "GET" | "POST", path: string): Endpoint =>
  defineEndpoint({
    id: path,
    summary: "",
    method,
    path,
    access: "public",
    body: "none",
    maxBodyBytes: 0,
    query: PageQuery,
    plan: ({ params, query }) =>
      Effect.succeed({
        bound: {},
        run: Effect.succeed({ status: 200, json: { path, params, query } }),
      }),
  })
const endpoints = [
  endpoint("GET", "/v1/files"),
  endpoint("GET", "/v1/files/{id}"),
  endpoint("GET", "/v1/files/{id}/parts/{part}"),
  endpoint("POST", "/v1/files/{id}"),
]

it("reaches the endpoint of method and path, with its parameters decoded and its query", async () => {
  const ask = askerOf(endpoints, callPathFixture())
  expect((await ask("GET /v1/files?limit=5")).json).toEqual({
    path: "/v1/files",
    params: {},
    query: { limit: 5 },
  })
  expect((await ask("GET /v1/files/a%2Fb/parts/2")).json).toMatchObject({
    path: "/v1/files/{id}/parts/{part}",
    params: { id: "a/b", part: "2" },
  })
  expect(routeOf(endpoints, "POST /v1/files/x").endpoint).toBe(endpoints[3])
})

it("says which request line has no endpoint", () => {
  for (const line of ["PUT /v1/files", "GET /v1/files/", "GET /v1/file", "GET /v1/files/a/parts"])
    expect(() => routeOf(endpoints, line)).toThrow(`no endpoint is ${line}`)
})
