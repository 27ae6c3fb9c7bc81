/** Posts to the dashboard's API of a server that runs; `token` is a session's, or empty. */
export const askDashboard = async (
  url: string,
  path: string,
  token: string,
  body: unknown,
): Promise<{ readonly token: string; readonly key: string; readonly id: string }> => {
  const headers = {
    "content-type": "application/json",
    ...(token && { authorization: `Bearer ${token}` }),
  }
  const reply = await fetch(url + path, { method: "POST", headers, body: JSON.stringify(body) })
  return (await reply.json()) as { token: string; key: string; id: string }
}

/** Makes a second account, which the administrator verifies. Returns its id and a key of it. */
export const addAccount = async (
  url: string,
  adminToken: string,
): Promise<{ readonly id: string; readonly key: string }> => {
  const [email, password] = ["other@example.com", "correct horse battery"]
  const { id } = await askDashboard(url, "/dashboard/signup", "", { email, password })
  await askDashboard(url, `/admin/accounts/${id}/verify`, adminToken, {})
  const { token } = await askDashboard(url, "/dashboard/login", "", { email, password })
  return { id, key: (await askDashboard(url, "/dashboard/keys", token, { name: "k" })).key }
}

/** What a call of the official client threw, or undefined. */
export const errorOf = async (
  work: Promise<unknown>,
): Promise<
  { readonly status: number; readonly code: string; readonly param: string | null } | undefined
> => {
  const error = await work.then(
    () => undefined,
    (cause) => cause as { status: number; code: string; param: string | null },
  )
  return error && { status: error.status, code: error.code, param: error.param }
}
