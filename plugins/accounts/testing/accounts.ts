import type { Answered, Asking, SessionFixture } from "./session-fixture.ts"

export const password = "correct horse"

/** What users do with their accounts, and the resulting state. */
export const accountsOf = (deps: SessionFixture) => {
  let count = 0
  const newEmail = () => `person${++count}@example.com`
  const post = (path: string, body?: unknown, how?: Asking) =>
    deps.ask("POST", `/dashboard/${path}`, body, how)
  return {
    newEmail,
    post,
    me: (token: string) => deps.ask("GET", "/dashboard/me", undefined, { token }),
    mailsTo: (to: string) => deps.mailer.sent.filter((mail) => mail.to === to),
    rowOf: (email: string) =>
      deps.tables
        .selectFrom("accounts_account")
        .selectAll()
        .where("email", "=", email)
        .executeTakeFirst(),
    signIn: async (email: string, secret = password): Promise<string> =>
      (await post("login", { email, password: secret })).json.token,
    /** Signs an account up and sets its state. */
    signUp: async (
      more: {
        readonly verified?: boolean
        readonly suspended?: boolean
        readonly role?: "admin"
      } = {},
    ) => {
      const email = newEmail()
      const { json } = await post("signup", { email, password })
      const at = new Date(deps.clock.nowMs())
      const state = {
        role: more.role ?? "user",
        verified_at: more.verified ? at : null,
        suspended_at: more.suspended ? at : null,
      } as const
      await deps.tables
        .updateTable("accounts_account")
        .set(state)
        .where("id", "=", json.id)
        .execute()
      return { id: json.id as string, email }
    },
  }
}

/**
 * The form of a reply: status, headers, and the types of its fields, which must not differ from
 * account to account.
 */
export const formOf = ({ status, headers, json }: Answered) => ({
  status,
  headers,
  json: Object.fromEntries(Object.entries(json).map(([name, value]) => [name, typeof value])),
})
