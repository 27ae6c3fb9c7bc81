import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type Platform, startPlatform } from "../platform.ts"

let platform: Platform
beforeAll(async () => {
  platform = await startPlatform()
})
afterAll(() => platform.close())

const ask = (content: string, more: object = {}) => ({
  model: "svc-lyt",
  messages: [{ role: "user" as const, content }],
  ...more,
})

describe("bad input", () => {
  const post = (
    body: string,
    headers: Record<string, string> = {},
    path = "/v1/chat/completions",
  ) =>
    fetch(platform.url + path, {
      method: "POST",
      body,
      headers: {
        authorization: `Bearer ${platform.credentials.api_key}`,
        "content-type": "application/json",
        ...headers,
      },
    })

  it.each<[string, () => Promise<Response>, number, string, string | null]>([
    ["no JSON", () => post("{"), 400, "invalid_json", null],
    ["no object", () => post("[]"), 400, "invalid_request_error", null],
    ["no messages", () => post('{"model":"svc-lyt"}'), 400, "invalid_request_error", "messages"],
    [
      "empty messages",
      () => post('{"model":"svc-lyt","messages":[]}'),
      400,
      "invalid_request_error",
      "messages",
    ],
    [
      "a wrong type",
      () => post(JSON.stringify(ask("x", { temperature: "hot" }))),
      400,
      "invalid_request_error",
      "temperature",
    ],
    [
      "an unknown model",
      () => post(JSON.stringify(ask("x", { model: "gpt-9" }))),
      400,
      "model_not_found",
      "model",
    ],
    [
      "a model of another task",
      () => post(JSON.stringify(ask("x", { model: "svc-embed" }))),
      400,
      "model_not_found",
      "model",
    ],
    [
      "deep nesting",
      () => post(`{"model":"svc-lyt","messages":${"[".repeat(20_000)}${"]".repeat(20_000)}}`),
      400,
      "invalid_request_error",
      null,
    ],
    [
      "what is not there yet",
      () =>
        post(
          JSON.stringify({
            ...ask("x"),
            messages: [
              {
                role: "user",
                content: [{ type: "image_url", image_url: { url: "data:image/png;base64,AA==" } }],
              },
            ],
          }),
        ),
      400,
      "unsupported_parameter",
      "messages[0].content[0].image_url",
    ],
    ["no key", () => post("{}", { authorization: "" }), 401, "authentication_error", null],
    [
      "a wrong key",
      () => post("{}", { authorization: `Bearer svc_live_${"x".repeat(32)}` }),
      401,
      "authentication_error",
      null,
    ],
    ["an unknown route", () => post("{}", {}, "/v1/nothing"), 404, "not_found", null],
    [
      "a wrong method",
      () => fetch(`${platform.url}/v1/chat/completions`),
      405,
      "method_not_allowed",
      null,
    ],
    [
      "a huge body",
      () =>
        post(
          JSON.stringify({ model: "svc-embed", input: "x".repeat(26 * 2 ** 20) }),
          {},
          "/v1/embeddings",
        ),
      413,
      "payload_too_large",
      null,
    ],
    [
      "another content type",
      () => post("a=b", { "content-type": "text/plain" }),
      415,
      "unsupported_media_type",
      null,
    ],
    [
      "a text that is too long",
      () =>
        post(
          JSON.stringify({ model: "svc-embed", input: "x".repeat(10_001), truncate: "NONE" }),
          {},
          "/v1/embeddings",
        ),
      422,
      "text_too_long",
      "input",
    ],
    [
      "no documents",
      () =>
        post(JSON.stringify({ model: "svc-rerank", query: "q", documents: [] }), {}, "/v1/rerank"),
      400,
      "invalid_request_error",
      "documents",
    ],
  ])("%s", async (_, send, status, code, param) => {
    const reply = await send()
    const body = (await reply.json()) as { error: object; request_id: string }
    expect({ status: reply.status, ...body.error }).toMatchObject({ status, code, param })
    expect(body.request_id).toBe(reply.headers.get("x-request-id"))
    if (status !== 401 && status !== 404 && status !== 405)
      expect(
        reply.headers.get("x-ratelimit-limit-requests") ??
          (status === 413 || status === 415 ? "not counted" : null),
      ).not.toBeNull()
  })
})
