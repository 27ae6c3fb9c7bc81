import { useEffect, useRef } from "preact/hooks"
import { useApp, useText } from "./app.js"
import { html } from "./html.js"
import { useModels } from "./models.js"
import { Frame } from "./parts/frame.js"
import { Loading, ProblemNotice } from "./parts/notice.js"
import { Returned } from "./parts/viewing.js"
import { routeOf, useRoute } from "./route.js"
import { useStore } from "./store.js"
import { Account } from "./views/account.js"
import { AccountWarnings } from "./views/account-warnings.js"
import { Admin } from "./views/admin.js"
import { Batches } from "./views/batches.js"
import { Calls } from "./views/calls.js"
import { Files } from "./views/files.js"
import { Forgot } from "./views/forgot.js"
import { Keys } from "./views/keys.js"
import { Knowledge } from "./views/knowledge.js"
import { Ledger } from "./views/ledger.js"
import { Overview } from "./views/overview.js"
import { Playground } from "./views/play.js"
import { Receipt } from "./views/receipt.js"
import { Reset } from "./views/reset.js"
import { Schemas } from "./views/schemas.js"
import { SignIn } from "./views/sign-in.js"
import { SignUp } from "./views/sign-up.js"
import { Usage } from "./views/usage.js"
import { ConfirmEmail, Verify } from "./views/verify.js"
import { Webhooks } from "./views/webhooks.js"
import { watch } from "./watch.js"

/** The routes of mailed links, signed in or not. */
const anywhere = { verify: Verify, reset: Reset, email: ConfirmEmail }
const outside = { "sign-in": SignIn, "sign-up": SignUp, forgot: Forgot }
const inside = {
  overview: Overview,
  keys: Keys,
  usage: Usage,
  calls: Calls,
  ledger: Ledger,
  playground: Playground,
  schemas: Schemas,
  batches: Batches,
  files: Files,
  knowledge: Knowledge,
  webhooks: Webhooks,
  account: Account,
}

/** Pages of one object, which lists lead to. */
const unlisted = { receipt: Receipt }

const routesOf = (isAdmin) => [...Object.keys(inside), ...(isAdmin ? ["admin"] : [])]
const viewOf = (route, isAdmin) => {
  if (route === "admin" && isAdmin) return ["admin", Admin]
  if (route in unlisted) return [route, unlisted[route]]
  return route in inside ? [route, inside[route]] : ["overview", Overview]
}

/** The session's account, loaded with each view, and again whenever the server says that it changed. */
const useAccount = (route) => {
  const { api, session, account, live, after } = useApp()
  const { token, own } = useStore(session)
  const refresh = async () => {
    const mine = session.get().token
    const show = (next) => {
      if (session.get().token === mine) account.set({ ...next, refresh })
    }
    await api.get("/dashboard/me").then(
      (me) => show({ me }),
      (problem) => show({ me: account.get()?.me, problem }),
    )
  }
  useEffect(() => {
    // a session in the place of one of the same account leaves the view as it is
    const { accountId } = session.get()
    if (!accountId || account.get()?.me?.id !== accountId) account.set(undefined)
  }, [token])
  useEffect(() => {
    if (token) refresh()
  }, [token, route])
  useEffect(() => {
    if (!token) return undefined
    const show = ({ account: me }) => {
      if (account.get() && session.get().token === token) account.set({ ...account.get(), me })
    }
    const onState = (state) => live.set(state)
    return watch({ api, path: "/dashboard/events", onEvent: show, onState, page: document, after })
  }, [token])
  return { token, own, ...useStore(account) }
}

/** Announces the view by title and focus; the first view leaves the focus where the browser put it. */
const useArrival = (name) => {
  const { t } = useText()
  const isFirst = useRef(true)
  useEffect(() => {
    if (!isFirst.current) document.getElementById("view")?.focus()
    isFirst.current = false
  }, [name])
  const title = `${t(`nav.${name}`)} · Rakit`
  useEffect(() => {
    document.title = title
  }, [title])
}

const Page = ({ name, view: View, routes, models, children }) => {
  useArrival(name)
  return html`<${Frame} routes=${routes} route=${name}>${children}<${View} key=${name} models=${models} /><//>`
}

const useSpokenLanguage = () => {
  const { language } = useText()
  useEffect(() => {
    document.documentElement.lang = language
  }, [language])
}

export const Screen = () => {
  const route = useRoute()
  const models = useModels()
  const { token, own, me, problem } = useAccount(route)
  useSpokenLanguage()
  useEffect(() => {
    // who has signed in is on no page for those who have not, and may have left it since it was drawn
    if (me && routeOf(location.hash) in outside) location.replace("#overview")
  }, [me, route])

  if (token && !me)
    return html`<${Frame} routes=${[]}>${problem ? html`<${ProblemNotice} problem=${problem} />` : html`<${Loading} />`}<//>`
  const isAdmin = me?.role === "admin" && !own
  const routes = me ? routesOf(isAdmin) : []
  if (route in anywhere)
    return html`<${Page} name=${route} view=${anywhere[route]} routes=${routes} models=${models} />`
  if (!me) {
    const name = route in outside ? route : "sign-in"
    return html`<${Page} name=${name} view=${outside[name]} routes=${[]} models=${models} />`
  }
  const [name, view] = viewOf(route, isAdmin)
  return html`<${Page} name=${name} view=${view} routes=${routes} models=${models}><${Returned} key=${token} route=${name} /><${AccountWarnings} me=${me} /><//>`
}
