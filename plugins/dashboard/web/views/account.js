import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Dialog } from "../parts/dialog.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Notice } from "../parts/notice.js"
import { useStore } from "../store.js"
import { Sessions } from "./account-sessions.js"
import { TwoFactor } from "./account-two-factor.js"

const CurrentPassword = () => {
  const { t } = useText()
  return html`<${Field} label=${t("password.current")} name="current_password" type="password" autocomplete="current-password" required />`
}

/** A card with a form; `said`, when it is done, above it. The form is emptied then. */
const Part = ({ title, what, send, submit, said, children }) => {
  const { t } = useText()
  const [done, setDone] = useState(undefined)
  const act = async (values, form) => {
    setDone(undefined)
    await send(values)
    form.reset()
    setDone(said(values))
  }
  return html`<section class="card narrow" aria-label=${title}>
    <h2>${title}</h2>
    ${what && html`<p class="quiet">${what}</p>`}
    ${done && html`<${Notice} kind="good">${done}<//>`}
    <${Form} onSubmit=${act} label=${title} actions=${html`<${Submit}>${submit ?? t("save")}<//>`}>${children}<//>
  </section>`
}

const Email = () => {
  const { t } = useText()
  const { api } = useApp()
  return html`<${Part} title=${t("account.email")} what=${t("account.email.what")} submit=${t("forgot.send")}
    send=${(values) => api.post("/dashboard/email", values)} said=${({ email }) => t("account.email.sent", { email })}>
    <${Field} label=${t("account.email.new")} name="email" type="email" autocomplete="email" required />
    <${CurrentPassword} />
  <//>`
}

const Password = () => {
  const { t } = useText()
  const { api, session } = useApp()
  return html`<${Part} title=${t("account.password")} what=${t("account.password.what")}
    send=${async (values) => session.begin(await api.post("/dashboard/password", values))} said=${() => t("account.password.done")}>
    <${CurrentPassword} />
    <${Field} label=${t("password.new")} hint=${t("password.hint")} name="password" type="password" autocomplete="new-password" required />
  <//>`
}

const LowBalance = ({ me, onChange }) => {
  const { t } = useText()
  const { api } = useApp()
  const [said, say] = useState(undefined)
  const save = async ({ low_balance_idr: text }) => {
    say(undefined)
    await api.post("/dashboard/low-balance", { low_balance_idr: text === "" ? null : Number(text) })
    onChange()
    say(t(text === "" ? "account.low.off" : "account.low.done"))
  }
  return html`<section class="card narrow" aria-label=${t("account.low")}>
    <h2>${t("account.low")}</h2>
    <p class="quiet">${t("account.low.what")}</p>
    ${said && html`<${Notice} kind="good">${said}<//>`}
    <${Form} onSubmit=${save} label=${t("account.low")} actions=${html`<${Submit}>${t("save")}<//>`}>
      <${Field} label=${t("grant.amount")} hint=${t("account.low.hint")} name="low_balance_idr" type="number" step="any" min="0" inputmode="decimal" defaultValue=${me.low_balance_idr ?? ""} />
    <//>
  </section>`
}

const Delete = ({ me }) => {
  const { t } = useText()
  const { api, session } = useApp()
  const [isAsking, setAsking] = useState(false)
  const remove = async (values) => {
    await api.post("/dashboard/delete-account", values)
    session.end("deleted")
  }
  const stop = () => setAsking(false)
  const actions = html`<${Submit} look="danger">${t("account.delete")}<//><${Button} onClick=${stop}>${t("cancel")}<//>`
  return html`<section class="card narrow" aria-label=${t("account.delete")}>
    <h2>${t("account.delete")}</h2>
    <p class="quiet">${t("account.delete.what")}</p>
    <div class="actions"><${Button} look="danger" onClick=${() => setAsking(true)}>${t("account.delete")}<//></div>
    ${
      isAsking &&
      html`<${Dialog} title=${t("account.delete.ask", { email: me.email })} onClose=${stop}>
      <p>${t("account.delete.what")}</p>
      <${Form} onSubmit=${remove} label=${t("account.delete")} actions=${actions}><${CurrentPassword} /><//>
    <//>`
    }
  </section>`
}

/** E-mail, password, sessions, the second factor, mails about the balance, and the end of the account. */
export const Account = () => {
  const { t } = useText()
  const { account } = useApp()
  const { me } = useStore(account)
  const reread = () => account.get().refresh()
  return html`
    <h1>${t("nav.account")}</h1>
    <p>${me.email} <span class="quiet">· ${t("key.created")} <${Moment} at=${me.created_at} /></span></p>
    <div class="cards"><${Email} /><${Password} /><${TwoFactor} me=${me} onChange=${reread} /><${LowBalance} me=${me} onChange=${reread} /><${Sessions} /><${Delete} me=${me} /></div>
  `
}
