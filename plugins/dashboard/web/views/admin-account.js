import { useEffect, useRef, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { exactMoney } from "../format.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Dialog } from "../parts/dialog.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useIdempotentSend } from "../parts/idempotent-send.js"
import { Notice } from "../parts/notice.js"
import { AccountUse } from "./admin-account-use.js"
import { SeeAs } from "./admin-account-view.js"
import { Entries } from "./ledger-entries.js"

/** The actions that an account's state allows; each is a POST of that name. Administrators cannot suspend or demote themselves. */
const actionsFor = ({ email_verified, suspended, role, two_factor }, isMine) => {
  const verify = email_verified ? [] : [{ name: "verify" }]
  if (isMine) return verify
  const suspension = suspended ? { name: "unsuspend" } : { name: "suspend", look: "danger" }
  const other =
    role === "admin"
      ? { name: "role", as: "demote", body: { role: "user" }, look: "danger" }
      : { name: "role", as: "promote", body: { role: "admin" } }
  const codes = two_factor ? [{ name: "end-two-factor", look: "danger" }] : []
  return [...verify, ...codes, suspension, other]
}

const Ask = ({ account, action, onDone, onClose }) => {
  const { t } = useText()
  const { api } = useApp()
  const word = action.as ?? action.name
  const act = async () =>
    onDone(await api.post(`/admin/accounts/${account.id}/${action.name}`, action.body))
  const actions = html`<${Submit} look=${action.look ?? "main"}>${t(`account.${word}`)}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<${Dialog} title=${t(`account.${word}.ask`, { email: account.email })} onClose=${onClose}>
    <p>${t(`account.${word}.what`)}</p>
    <${Form} onSubmit=${act} actions=${actions} />
  <//>`
}

const Grant = ({ account, onDone }) => {
  const { t, language } = useText()
  const { api } = useApp()
  const sendOnce = useIdempotentSend()
  const grant = async ({ amount_idr, reason }, form) => {
    const body = { amount_idr: Number(amount_idr), reason }
    const changed = await sendOnce((idempotencyKey) =>
      api.post(`/admin/accounts/${account.id}/grants`, body, { idempotencyKey }),
    )
    form.reset()
    onDone(changed, t("grant.done", { amount: exactMoney(Number(amount_idr), language) }))
  }
  return html`<${Form} onSubmit=${grant} label=${t("grant")} actions=${html`<${Submit}>${t("grant")}<//>`}>
    <div class="fields">
      <${Field} label=${t("grant.amount")} hint=${t("grant.hint")} name="amount_idr" type="number" step="any" inputmode="decimal" required />
      <${Field} label=${t("grant.reason")} name="reason" autocomplete="off" required />
    </div>
  <//>`
}

export const AccountPanel = ({ account, onChange, onClose }) => {
  const { t } = useText()
  const { account: mine } = useApp()
  const heading = useRef()
  const [asked, ask] = useState(undefined)
  const [said, say] = useState("")
  const [isOpen, setOpen] = useState(false)
  useEffect(() => heading.current.focus(), [])
  const done = (changed, words) => {
    ask(undefined)
    say(words)
    onChange(changed)
    // it may be the administrator's own account
    mine.get()?.refresh()
  }
  const actions = actionsFor(account, mine.get()?.me.id === account.id)
  return html`<section class="card" aria-labelledby="account">
    <div class="head"><h2 id="account" ref=${heading} tabindex="-1">${account.email}</h2><${Button} onClick=${onClose}>${t("close")}<//></div>
    <p class="quiet"><code>${account.id}</code> · ${t("balance")} <b><${Amount} value=${account.balance_idr} /></b></p>
    ${said && html`<${Notice} kind="good">${said}<//>`}
    ${
      actions.length > 0 &&
      html`<div class="actions">
      ${actions.map((action) => html`<${Button} key=${action.as ?? action.name} look=${action.look ?? "plain"} onClick=${() => ask(action)}>${t(`account.${action.as ?? action.name}`)}<//>`)}
    </div>`
    }
    ${account.role === "user" && html`<${SeeAs} account=${account} />`}
    <h3>${t("grant")}</h3>
    <${Grant} account=${account} onDone=${done} />
    <${AccountUse} account=${account} />
    <details onToggle=${(event) => setOpen(event.target.open)}>
      <summary>${t("nav.ledger")}</summary>
      ${isOpen && html`<${Entries} query=${{ account: account.id }} changes=${account.balance_idr} />`}
    </details>
    ${asked && html`<${Ask} account=${account} action=${asked} onClose=${() => ask(undefined)} onDone=${(changed) => done(changed, t(`account.${asked.as ?? asked.name}.done`))} />`}
  </section>`
}
