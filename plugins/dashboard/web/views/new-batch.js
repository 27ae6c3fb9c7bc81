import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { Amount } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { Drop } from "../parts/drop.js"
import { Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useIdempotentSend } from "../parts/idempotent-send.js"
import { Notice } from "../parts/notice.js"
import { useFiles } from "./file-list.js"

const endpoints = ["/v1/chat/completions", "/v1/embeddings", "/v1/rerank", "/v1/retrieval"]

/** What the check found: lines, faults, the highest cost. */
const Found = ({ check }) => {
  const { t, language } = useText()
  const values = {
    lines: count(check.lines, language),
    invalid: count(check.invalid_lines, language),
  }
  const kind = check.would_succeed ? (check.invalid_lines > 0 ? "warn" : "good") : "bad"
  return html`<${Notice} kind=${kind}>
    <p>${t(check.would_succeed ? "batch.checked" : "batch.refused", values)}</p>
    <p>${t("batch.cost")} <b><${Amount} value=${check.cost_idr} /></b></p>
    ${check.errors?.length > 0 && html`<ul>${check.errors.slice(0, 10).map((error, index) => html`<li key=${index}>${error.line ? `${t("batch.line")} ${count(error.line, language)}: ` : ""}${error.message}</li>`)}</ul>`}
  <//>`
}

/** States: a file and an endpoint are chosen -> checked (nothing paid, nothing begun) -> begun. */
export const NewBatch = ({ onMade, onClose }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const files = useFiles({ purpose: "batch_input" })
  const [chosen, choose] = useState({ endpoint: endpoints[0] })
  const [check, setCheck] = useState(undefined)
  const sendOnce = useIdempotentSend()
  const pick = (more) => choose((now) => ({ ...now, ...more }))
  const fileId = chosen.file ?? files.items?.[0]?.id
  const body = { input_file_id: fileId, endpoint: chosen.endpoint }
  const about = JSON.stringify(body)
  // another file may be chosen while one is checked
  const found = check?.about === about ? check.found : undefined
  const send = async () => {
    if (found)
      return onMade(
        await sendOnce((idempotencyKey) => v1.post("/v1/batches", body, { idempotencyKey })),
      )
    setCheck({
      about,
      found: await v1.post("/v1/batches", body, { headers: { "x-dry-run": "1" } }),
    })
  }
  // the second click of two would begin what nobody has seen the price of
  const onBegin = (event) => event.detail > 1 && event.preventDefault()
  const take = (file) => {
    pick({ file: file.id })
    files.reload()
  }
  const actions = html`${fileId && (found ? html`<${Submit} key="begin" onClick=${onBegin}>${t("batch.begin")}<//>` : html`<${Submit} key="check">${t("batch.check")}<//>`)}<${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<section class="card" aria-label=${t("batch.new")}>
    <h2>${t("batch.new")}</h2>
    <${Drop} label=${t("upload")} hint=${t("upload.hint.batch_input")} accept=".jsonl" purpose="batch_input" onUploaded=${take} />
    <${Form} onSubmit=${send} label=${t("batch.new")} actions=${actions}>
      <div class="fields">
        ${files.items?.length > 0 && html`<${Field} label=${t("batch.input")} as="select" name="input_file_id" value=${fileId} onChange=${(event) => pick({ file: event.target.value })}>${files.items.map(({ id, filename }) => html`<option key=${id} value=${id}>${filename}</option>`)}<//>`}
        <${Field} label=${t("batch.endpoint")} as="select" name="endpoint" value=${chosen.endpoint} onChange=${(event) => pick({ endpoint: event.target.value })}>${endpoints.map((path) => html`<option key=${path}>${path}</option>`)}<//>
      </div>
      ${found && html`<${Found} check=${found} />`}
    <//>
  </section>`
}
