import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { html } from "../html.js"
import { Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { Entries } from "./ledger-entries.js"

export const Ledger = () => {
  const { t } = useText()
  const { api } = useApp()
  const saveAll = async () =>
    saveReply(
      await api.send("GET", "/dashboard/ledger", { query: { format: "csv" } }),
      "ledger.csv",
    )
  return html`
    <div class="head"><h1>${t("nav.ledger")}</h1><${Form} onSubmit=${saveAll} label="CSV" actions=${html`<${Submit} look="plain">${t("csv")}<//>`} /></div>
    <section class="card"><${Entries} /></section>
  `
}
