import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"
import { useStore } from "../store.js"
import { Entry } from "./entry.js"

const reasonKind = {
  left: "info",
  expired: "warn",
  refused: "warn",
  changed: "info",
  elsewhere: "info",
  deleted: "info",
}

export const SignIn = ({ models }) => {
  const { t } = useText()
  const { api, session } = useApp()
  const { reason } = useStore(session)
  const [asksCode, askCode] = useState(false)
  const enter = async ({ email, password, code }) => {
    try {
      session.begin(await api.post("/dashboard/login", { email, password, code }))
    } catch (problem) {
      if (problem.param !== "code" || asksCode) throw problem
      askCode(true)
    }
  }
  return html`<${Entry} title=${t("nav.sign-in")} models=${models}>
    ${reason && html`<${Notice} kind=${reasonKind[reason]}>${t(`session.${reason}`)}<//>`}
    <${Form} onSubmit=${enter} label=${t("nav.sign-in")} actions=${html`<${Submit}>${t("signIn")}<//>`}>
      <${Field} label=${t("email")} name="email" type="email" autocomplete="username" required />
      <${Field} label=${t("password")} name="password" type="password" autocomplete="current-password" required />
      ${asksCode && html`<${Field} label=${t("code")} hint=${t("code.hint")} name="code" autocomplete="one-time-code" autofocus required />`}
    <//>
    <p class="links"><a href="#sign-up">${t("nav.sign-up")}</a><a href="#forgot">${t("forgot")}</a></p>
  <//>`
}
