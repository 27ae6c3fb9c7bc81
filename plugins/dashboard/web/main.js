import { render } from "preact"
import { makeApi } from "./api.js"
import { AppContext } from "./app.js"
import { nowMs } from "./clock.js"
import { html } from "./html.js"
import { makeLanguage } from "./language.js"
import { takeMailToken } from "./route.js"
import { Screen } from "./screen.js"
import { makeSession } from "./session.js"
import { makePersisted, makeStore } from "./store.js"
import { makeV1 } from "./v1.js"

const start = () => {
  const mailToken = makeStore(takeMailToken(location, history))
  const persisted = (key) => makePersisted(() => localStorage, key)
  const after = (ms, work) => {
    const timer = setTimeout(work, ms)
    return () => clearTimeout(timer)
  }
  const session = makeSession({ persisted: persisted("rakit.session"), nowMs, after })
  const language = makeLanguage({
    persisted: persisted("rakit.language"),
    preferred: navigator.languages,
  })
  const api = makeApi({ session, language })

  // a mailed link may be opened in a tab that shows the page already
  addEventListener("hashchange", () => {
    const taken = takeMailToken(location, history)
    if (taken) mailToken.set(taken)
  })
  addEventListener("storage", ({ key }) => {
    if (key === null || key === "rakit.session") session.reread()
  })
  const app = {
    ...{ api, v1: makeV1({ api, session, nowMs }), session, language, mailToken, nowMs, after },
    account: makeStore(undefined),
    carried: makeStore(undefined),
    live: makeStore("connecting"),
  }
  render(
    html`<${AppContext.Provider} value=${app}><${Screen} /><//>`,
    document.getElementById("app"),
  )
}

start()
