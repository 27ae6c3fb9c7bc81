import { useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { saveReply } from "../download.js"
import { count } from "../format.js"
import { html } from "../html.js"
import { Amount, Moment } from "../parts/amount.js"
import { Ask } from "../parts/ask.js"
import { Button } from "../parts/button.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { ProblemNotice } from "../parts/notice.js"
import { usePoll } from "../parts/poll.js"
import { BatchErrors } from "./batch-errors.js"
import { NewBatch } from "./new-batch.js"

const isRunning = ({ status }) => ["validating", "in_progress"].includes(status)

const Progress = ({ counts }) => {
  const { t, language } = useText()
  const values = {
    done: count(counts.completed + counts.failed, language),
    all: count(counts.total, language),
    failed: count(counts.failed, language),
  }
  const text = t("batch.progress", values)
  return html`<div><p>${text}</p><progress max=${counts.total || 1} value=${counts.completed + counts.failed} aria-label=${text}></progress></div>`
}

const Batch = ({ batch, onChange }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const [isAsking, ask] = useState(false)
  const [problem, refuse] = useState(undefined)
  const save = (id, name) => {
    refuse(undefined)
    return v1
      .send("GET", `/v1/files/${id}/content`)
      .then((reply) => saveReply(reply, `${batch.id}-${name}.jsonl`), refuse)
  }
  const cancel = async () => {
    onChange(await v1.post(`/v1/batches/${batch.id}/cancel`))
    ask(false)
  }
  const { output_file_id: output, error_file_id: errors } = batch
  return html`<section class="card" aria-label=${batch.id}>
    <div class="head"><h2><code>${batch.id}</code></h2><b class=${`badge ${batch.status}`}>${t(`batch.${batch.status}`)}</b></div>
    <p class="quiet"><code>${batch.endpoint}</code> · <${Moment} at=${batch.created_at} /> · <b><${Amount} value=${batch.total_cost_idr} /></b></p>
    <${Progress} counts=${batch.request_counts} />
    <${BatchErrors} batch=${batch} />
    <${ProblemNotice} problem=${problem} />
    <div class="actions">
      ${output && html`<${Button} onClick=${() => save(output, "output")}>${t("batch.output")}<//>`}
      ${errors && html`<${Button} onClick=${() => save(errors, "errors")}>${t("batch.errors")}<//>`}
      ${isRunning(batch) && html`<${Button} look="danger" onClick=${() => ask(true)}>${t("batch.cancel")}<//>`}
    </div>
    ${isAsking && html`<${Ask} title=${t("batch.cancel.ask")} what=${t("batch.cancel.what")} yes=${t("batch.cancel")} act=${cancel} onClose=${() => ask(false)} />`}
  </section>`
}

/** Batches: a check before anything is paid, then live progress, errors by line, downloads. */
export const Batches = () => {
  const { t } = useText()
  const { v1, account } = useApp()
  const list = useList("/v1/batches", {}, v1)
  const [isMaking, setMaking] = useState(false)
  usePoll(list.items?.some(isRunning) ?? false, list.refresh)
  const take = (batch) => {
    setMaking(false)
    list.put(batch)
    account.get()?.refresh()
  }
  return html`
    <div class="head"><h1>${t("nav.batches")}</h1>${!isMaking && html`<${Button} look="main" onClick=${() => setMaking(true)}>${t("batch.new")}<//>`}</div>
    ${isMaking && html`<${NewBatch} onMade=${take} onClose=${() => setMaking(false)} />`}
    ${list.items?.length === 0 && html`<p class="quiet">${t("batches.none")}</p>`}
    ${list.items?.map((batch) => html`<${Batch} key=${batch.id} batch=${batch} onChange=${list.put} />`)}
    <${More} list=${list} />
  `
}
