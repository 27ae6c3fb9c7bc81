import { expect } from "vitest"
import type { Caller } from "../../../core/index.ts"
import type { ApiFixture } from "./api-fixture.ts"

/** Requests on the keys of the account `as`. */
export const keyRequests = (api: ApiFixture, as: Caller) => ({
  /** Makes a key, which must succeed. */
  create: async (body: object = { name: "k" }) => {
    const { status, json } = await api.ask("POST /dashboard/keys", { as, body })
    expect([status, json]).toEqual([201, expect.anything()])
    return json
  },
  patch: (id: string, body: object) => api.ask(`PATCH /dashboard/keys/${id}`, { as, body }),
  revoke: (id: string) => api.ask(`DELETE /dashboard/keys/${id}`, { as }),
  list: (query = "") => api.ask(`GET /dashboard/keys${query}`, { as }),
})

/** Status, code and parameter of an error. */
export const refusal = ({ status, json }: Awaited<ReturnType<ApiFixture["ask"]>>) => [
  status,
  json.code,
  json.param,
]
