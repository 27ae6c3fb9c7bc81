import { expect } from "vitest"

/** Status, code and param of an error reply, whose envelope and request id are checked. */
export const errorOutcome = async (res: Response) => {
  const body = (await res.json()) as {
    error: { code: string; param: string | null; message: string; type: string }
    request_id: string
  }
  expect(body.request_id).toBe(res.headers.get("x-request-id"))
  expect(Object.keys(body).sort()).toEqual(["error", "request_id"])
  expect(Object.keys(body.error).sort()).toEqual(["code", "message", "param", "type"])
  return [res.status, body.error.code, body.error.param] as const
}
