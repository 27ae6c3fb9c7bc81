import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"
import { Entry } from "./entry.js"

export const SignUp = ({ models }) => {
  const { t } = useText()
  const { api, session } = useApp()
  const [sentTo, sent] = useState(undefined)
  const create = async ({ email, password }) => {
    const given = { email, password }
    await api.post("/dashboard/signup", given)
    // the reply is the same for every address; only who knows the account's password gets in
    await api.post("/dashboard/login", given).then(session.begin, (problem) => {
      if (problem.code !== "authentication_error") throw problem
      sent(email)
    })
  }
  return html`<${Entry} title=${t("nav.sign-up")} models=${models}>
    ${
      sentTo
        ? html`<${Notice} kind="good">${t("signUp.sent", { email: sentTo })}<//>`
        : html`<${Form} onSubmit=${create} label=${t("nav.sign-up")} actions=${html`<${Submit}>${t("signUp")}<//>`}>
            <${Field} label=${t("email")} name="email" type="email" autocomplete="username" required />
            <${Field} label=${t("password")} hint=${t("password.hint")} name="password" type="password" autocomplete="new-password" required />
          <//>`
    }
    <p class="links"><a href="#sign-in">${t("nav.sign-in")}</a></p>
  <//>`
}
