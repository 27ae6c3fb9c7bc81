/** An error of the API, or `unreachable` without a reply, or `unreadable` when the reply is not the API's. */
export class Problem extends Error {
  constructor({
    status = 0,
    code = "unreachable",
    message = "",
    param = undefined,
    requestId = undefined,
    retryAfter = undefined,
  }) {
    super(message)
    Object.assign(this, { status, code, param: param ?? undefined, requestId, retryAfter })
  }
}

export const problemOf = async (reply) => {
  const requestId = reply.headers.get("x-request-id") ?? undefined
  const body = await reply.json().catch(() => undefined)
  if (typeof body?.error?.message !== "string")
    return new Problem({ status: reply.status, code: "unreadable", requestId })
  return new Problem({
    status: reply.status,
    ...body.error,
    requestId: body.request_id ?? requestId,
    retryAfter: reply.headers.get("retry-after") ?? undefined,
  })
}

const addressOf = (path, query = {}) => {
  const given = Object.entries(query).filter(([, value]) => value !== undefined && value !== "")
  return given.length > 0 ? `${path}?${new URLSearchParams(given)}` : path
}

/** Calls the API with the session's token. */
export const makeApi = ({ session, language }) => {
  const headersOf = ({ body, token, idempotencyKey, headers }) => ({
    "accept-language": language.get(),
    ...(token && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { "content-type": "application/json" }),
    ...(idempotencyKey && { "idempotency-key": idempotencyKey }),
    ...headers,
  })

  /** `key`: an API key instead of the session; `form`: a FormData instead of JSON, whose type the browser sets. */
  const send = async (method, path, { body, form, query, key, signal, ...more } = {}) => {
    const token = key ?? session.get().token
    const text = body === undefined ? undefined : JSON.stringify(body)
    const reply = await fetch(addressOf(path, query), {
      method,
      headers: headersOf({ body, token, ...more }),
      body: form ?? text,
      signal,
    }).catch((cause) => {
      if (cause.name === "AbortError") throw cause
      throw new Problem({})
    })
    if (reply.ok) return reply
    const problem = await problemOf(reply)
    // a late reply must not end a session that began since
    if (
      reply.status === 401 &&
      key === undefined &&
      token !== undefined &&
      token === session.get().token
    )
      session.end("refused")
    throw problem
  }

  const json = async (...request) => {
    const reply = await send(...request)
    const requestId = reply.headers.get("x-request-id") ?? undefined
    return reply.json().catch(() => {
      throw new Problem({ status: reply.status, code: "unreadable", requestId })
    })
  }

  return {
    send,
    get: (path, query) => json("GET", path, { query }),
    post: (path, body, more = {}) => json("POST", path, { body, ...more }),
    patch: (path, body) => json("PATCH", path, { body }),
    remove: (path) => json("DELETE", path),
  }
}
