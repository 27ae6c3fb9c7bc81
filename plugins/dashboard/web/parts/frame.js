import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { languageNames } from "../language.js"
import { useStore } from "../store.js"
import { Button } from "./button.js"
import { Viewing } from "./viewing.js"

const Languages = () => {
  const { t, language } = useText()
  const { language: store } = useApp()
  return html`<div class="languages" role="group" aria-label=${t("language")}>
    ${Object.entries(languageNames).map(
      ([code, name]) =>
        html`<button type="button" lang=${code} key=${code} aria-pressed=${code === language} title=${name} onClick=${() => store.choose(code)}>${code.toUpperCase()}<span class="unseen"> ${name}</span></button>`,
    )}
  </div>`
}

const Navigation = ({ routes, route }) => {
  const { t } = useText()
  return html`<nav aria-label=${t("nav")}>
    ${routes.map((name) => html`<a key=${name} href=${`#${name}`} aria-current=${name === route ? "page" : undefined}>${t(`nav.${name}`)}</a>`)}
  </nav>`
}

/** Whether what is shown follows the server. */
const Live = () => {
  const { t } = useText()
  const state = useStore(useApp().live)
  const text = t(`live.${state}`)
  return html`<span class=${`link-state ${state}`} role="status" title=${text}><span class="unseen">${text}</span></span>`
}

/** Its name has a hash, which the page knows. */
const iconPath = () => document.querySelector("link[rel=icon]")?.getAttribute("href")

/** The page around every view: header, navigation, footer. */
export const Frame = ({ routes, route, children }) => {
  const { t } = useText()
  const { api, session, account } = useApp()
  const { me } = useStore(account) ?? {}
  const { token, own } = useStore(session)
  const signOut = () => {
    // here it ends at once, also where the server can't be reached
    api.remove("/dashboard/sessions/current").catch(() => undefined)
    session.end("left")
  }
  return html`
    <a class="skip" href="#view" onClick=${(event) => {
      event.preventDefault()
      document.getElementById("view").focus()
    }}>${t("skip")}</a>
    <${Viewing} />
    <header class="top">
      <a class="brand" href="#overview"><img src=${iconPath()} alt="" width="28" height="28" />Rakit</a>
      ${routes.length > 0 && html`<${Navigation} routes=${routes} route=${route} />`}
      <div class="who">
        ${me && html`<${Live} />`}
        ${me && html`<span class="quiet email" title=${me.email}>${me.email}</span>`}
        <${Languages} />
        ${token && !own && html`<${Button} onClick=${signOut}>${t("signOut")}<//>`}
      </div>
    </header>
    <main id="view" tabindex="-1">${children}</main>
    <footer class="quiet"><a href="/docs">${t("docs")}</a> · <a href="/openapi.json">openapi.json</a> · <a href="/metrics">metrics</a> · <a href="/readyz">readyz</a></footer>
  `
}
