import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"
import { useStore } from "../store.js"
import { Entry } from "./entry.js"

export const Reset = ({ models }) => {
  const { t } = useText()
  const { api, session, mailToken } = useApp()
  const mailed = useStore(mailToken)
  const [isDone, done] = useState(false)
  const change = async ({ password }) => {
    await api.post("/dashboard/reset", { token: mailed.token, password })
    mailToken.set(undefined)
    // the password has changed, and all sessions have ended
    if (session.get().token) session.end("changed")
    done(true)
  }
  const form =
    () => html`<${Form} onSubmit=${change} label=${t("nav.reset")} actions=${html`<${Submit}>${t("reset")}<//>`}>
    <${Field} label=${t("password.new")} hint=${t("password.hint")} name="password" type="password" autocomplete="new-password" required />
  <//>`
  const hasToken = mailed?.purpose === "reset"
  return html`<${Entry} title=${t("nav.reset")} models=${models}>
    ${hasToken ? form() : isDone ? html`<${Notice} kind="good">${t("reset.done")}<//>` : html`<${Notice} kind="warn">${t("link.missing")}<//>`}
    <p class="links"><a href="#sign-in">${t("nav.sign-in")}</a>${!isDone && html`<a href="#forgot">${t("forgot.again")}</a>`}</p>
  <//>`
}
