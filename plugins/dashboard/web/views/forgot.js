import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"
import { Entry } from "./entry.js"

export const Forgot = ({ models }) => {
  const { t } = useText()
  const { api } = useApp()
  const [sentTo, sent] = useState(undefined)
  const ask = async ({ email }) => {
    await api.send("POST", "/dashboard/forgot", { body: { email } })
    sent(email)
  }
  return html`<${Entry} title=${t("nav.forgot")} models=${models}>
    ${
      sentTo
        ? html`<${Notice} kind="good">${t("forgot.sent", { email: sentTo })}<//>`
        : html`<${Form} onSubmit=${ask} label=${t("nav.forgot")} actions=${html`<${Submit}>${t("forgot.send")}<//>`}>
            <${Field} label=${t("email")} hint=${t("forgot.hint")} name="email" type="email" autocomplete="username" required />
          <//>`
    }
    <p class="links"><a href="#sign-in">${t("nav.sign-in")}</a></p>
  <//>`
}
