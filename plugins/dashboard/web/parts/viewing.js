import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { moment } from "../format.js"
import { html } from "../html.js"
import { useStore } from "../store.js"
import { Button } from "./button.js"
import { Notice } from "./notice.js"

/** Above every page, as long as an administrator sees another account in it. */
export const Viewing = () => {
  const { t, language } = useText()
  const { api, session, account } = useApp()
  const [busy, setBusy] = useState(false)
  const { own, expiresAtMs } = useStore(session)
  const { me } = useStore(account) ?? {}
  if (!own) return null
  const back = async () => {
    setBusy(true)
    // what the server does not hear of ends by itself
    await api.send("POST", "/admin/end-impersonation", { key: own.token }).catch(() => undefined)
    setBusy(false)
    if (session.get().own) session.end("back")
    location.hash = "#admin"
  }
  const until = moment(expiresAtMs / 1000, language)
  return html`<section class="viewing" aria-label=${t("view")}>
    <p role="status">${me ? t("view.now", { email: me.email, until }) : t("view")}</p>
    <${Button} busy=${busy} onClick=${back}>${t("view.back")}<//>
  </section>`
}

/** Says once, on the page where it happened, that the own session goes on. */
export const Returned = ({ route }) => {
  const { t } = useText()
  const { ended } = useStore(useApp().session)
  const [first] = useState(route)
  if (ended === undefined || route !== first) return null
  return html`<${Notice} kind=${ended === "back" ? "good" : "warn"}>${t(ended === "back" ? "view.left" : "view.ended")}<//>`
}
