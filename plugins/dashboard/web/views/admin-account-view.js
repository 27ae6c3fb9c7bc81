import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Dialog } from "../parts/dialog.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"

/** Shows the dashboard as the account's owner sees it, read-only; why is recorded. */
export const SeeAs = ({ account }) => {
  const { t } = useText()
  const { api, session } = useApp()
  const [isAsking, setAsking] = useState(false)
  const stop = () => setAsking(false)
  const see = async ({ reason }) => {
    session.see(await api.post(`/admin/accounts/${account.id}/impersonate`, { reason }))
    location.hash = "#overview"
  }
  const actions = html`<${Submit}>${t("view.begin")}<//><${Button} onClick=${stop}>${t("cancel")}<//>`
  return html`<div class="actions"><${Button} onClick=${() => setAsking(true)}>${t("view.begin")}<//></div>
    ${
      isAsking &&
      html`<${Dialog} title=${t("view.ask", { email: account.email })} onClose=${stop}>
      <p>${t("view.what")}</p>
      <${Form} onSubmit=${see} label=${t("view.begin")} actions=${actions}>
        <${Field} label=${t("grant.reason")} hint=${t("view.reason.hint")} name="reason" maxlength="500" autocomplete="off" required />
      <//>
    <//>`
    }`
}
