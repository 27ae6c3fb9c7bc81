import { useState } from "preact/hooks"
import { useText } from "../app.js"
import { html } from "../html.js"
import { Amount, Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { Table } from "../parts/table.js"
import { AccountPanel } from "./admin-account.js"
import { Audit } from "./admin-audit.js"

const State = ({ account }) => {
  const { t } = useText()
  return html`
    ${account.role === "admin" && html`<span class="badge live">admin</span> `}
    ${account.suspended && html`<span class="badge failed">${t("account.suspended")}</span> `}
    ${account.email_verified ? "" : html`<span class="badge test">${t("account.unverified")}</span>`}
  `
}

const columnsOf = (t, open) => [
  {
    key: "email",
    label: t("email"),
    cell: (account) =>
      html`<${Button} look="link" onClick=${() => open(account.id)}>${account.email}<//>`,
  },
  {
    key: "state",
    label: t("account.state"),
    cell: (account) => html`<${State} account=${account} />`,
  },
  {
    key: "balance",
    label: t("balance"),
    number: true,
    cell: (account) => html`<${Amount} value=${account.balance_idr} />`,
  },
  {
    key: "held",
    label: t("held"),
    number: true,
    cell: (account) => html`<${Amount} value=${account.held_idr} />`,
  },
  {
    key: "created",
    label: t("account.created"),
    cell: (account) => html`<${Moment} at=${account.created_at} />`,
  },
]

const states = ["all", "active", "unverified", "suspended", "admin"]

const Search = ({ onSearch }) => {
  const { t } = useText()
  const search = async ({ q, ...rest }) => onSearch({ q: q.trim(), ...rest })
  return html`<${Form} onSubmit=${search} label=${t("accounts.search")} actions=${html`<${Submit}>${t("search")}<//>`}>
    <div class="fields">
      <${Field} label=${t("accounts.search")} name="q" type="search" autocomplete="off" maxlength="200" />
      <${Field} label=${t("account.state")} name="state" as="select">
        ${states.map((state) => html`<option key=${state} value=${state}>${t(`accounts.state.${state}`)}</option>`)}
      <//>
      <${Field} label=${t("accounts.below")} name="balance_below" type="number" step="any" inputmode="decimal" />
    </div>
  <//>`
}

/** Accounts, the one that is opened, and the audit log. */
export const AdminAccounts = () => {
  const { t } = useText()
  const [filter, search] = useState({})
  const [openId, open] = useState(undefined)
  const [changes, setChanges] = useState(0)
  const list = useList("/admin/accounts", filter)
  const change = (account) => {
    list.put(account)
    setChanges((n) => n + 1)
  }
  const opened = list.items?.find(({ id }) => id === openId)
  return html`
    <section class="card" aria-labelledby="accounts">
      <h2 id="accounts">${t("accounts")}</h2>
      <${Search} onSearch=${search} />
      ${list.items?.length === 0 && html`<p class="quiet" role="status">${t("accounts.none")}</p>`}
      ${list.items?.length > 0 && html`<${Table} caption=${t("accounts")} columns=${columnsOf(t, open)} rows=${list.items} />`}
      <${More} list=${list} />
    </section>
    ${opened && html`<${AccountPanel} key=${opened.id} account=${opened} onChange=${change} onClose=${() => open(undefined)} />`}
    <${Audit} changes=${changes} />
  `
}
