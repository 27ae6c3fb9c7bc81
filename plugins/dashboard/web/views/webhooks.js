import { useEffect, useRef, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Ask } from "../parts/ask.js"
import { Button } from "../parts/button.js"
import { Copy } from "../parts/copy.js"
import { Check, Field, Submit } from "../parts/field.js"
import { Form } from "../parts/form.js"
import { useIdempotentSend } from "../parts/idempotent-send.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { Notice, ProblemNotice } from "../parts/notice.js"
import { Deliveries } from "./webhook-deliveries.js"

const events = ["batch.completed", "batch.failed"]

const NewWebhook = ({ onMade, onClose }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const sendOnce = useIdempotentSend()
  const make = async (values) => {
    const { url, description } = values
    const chosen = events.filter((event) => values[event])
    const body = { url, events: chosen, ...(description && { description }) }
    onMade(await sendOnce((idempotencyKey) => v1.post("/v1/webhooks", body, { idempotencyKey })))
  }
  const actions = html`<${Submit}>${t("webhook.create")}<//><${Button} onClick=${onClose}>${t("cancel")}<//>`
  return html`<section class="card" aria-label=${t("webhook.new")}>
    <h2>${t("webhook.new")}</h2>
    <${Form} onSubmit=${make} label=${t("webhook.new")} actions=${actions}>
      <${Field} label=${t("webhook.url")} hint=${t("webhook.url.hint")} name="url" type="url" required maxlength="2048" />
      <fieldset><legend>${t("webhook.events")}</legend>${events.map((event) => html`<${Check} key=${event} label=${event} name=${event} defaultChecked />`)}</fieldset>
      <${Field} label=${t("webhook.description")} name="description" maxlength="500" />
    <//>
  </section>`
}

const Secret = ({ made, onClose }) => {
  const { t } = useText()
  const heading = useRef()
  useEffect(() => heading.current.focus(), [])
  return html`<section class="card made" aria-label=${t("webhook.secret")}>
    <h2 ref=${heading} tabindex="-1">${made.url}</h2>
    <${Notice} kind="warn">${t("webhook.once")}<//>
    <${Copy} label=${t("webhook.secret")} text=${made.secret} />
    <p class="hint">${t("webhook.verify")}</p>
    <div class="actions"><${Button} onClick=${onClose}>${t("key.stored")}<//></div>
  </section>`
}

const Last = ({ webhook }) => {
  const { t } = useText()
  if (!webhook.last_delivery_at) return html`<p class="quiet">${t("webhook.unused")}</p>`
  return html`<p class="quiet">${t("webhook.last")} <${Moment} at=${webhook.last_delivery_at} />${webhook.last_error && html`: <b class="bad">${webhook.last_error}</b>`}</p>`
}

const Webhook = ({ webhook, onSecret, onGone, onChange }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const [asked, ask] = useState(undefined)
  const [sent, setSent] = useState(0)
  const [isOpen, setOpen] = useState(false)
  const [problem, refuse] = useState(undefined)
  const sendOnce = useIdempotentSend()
  const path = `/v1/webhooks/${webhook.id}`
  const test = () => {
    refuse(undefined)
    return v1.post(`${path}/test`).then(() => {
      setOpen(true)
      setSent((n) => n + 1)
    }, refuse)
  }
  const acts = {
    // sent twice, it would end the secret that the receiver still has
    rotate: async () => {
      const rotate = (idempotencyKey) => v1.post(`${path}/rotate`, undefined, { idempotencyKey })
      onSecret({ ...webhook, ...(await sendOnce(rotate)) })
    },
    delete: async () => onGone(await v1.remove(path)),
  }
  /** A delivery that has ended may have disabled it, or made it active again. */
  const refresh = () => v1.get(path).then(onChange, () => undefined)
  const act = async () => {
    await acts[asked]()
    ask(undefined)
  }
  return html`<section class="card" aria-label=${webhook.url}>
    <div class="head"><h2>${webhook.url}</h2>${webhook.status === "disabled" && html`<b class="bad">${t("webhook.disabled")}</b>`}</div>
    <p class="quiet">${webhook.events.join(", ")}${webhook.description && ` · ${webhook.description}`} · <code>${webhook.id}</code></p>
    <${Last} webhook=${webhook} />
    <${ProblemNotice} problem=${problem} />
    <div class="actions">
      <${Button} onClick=${test}>${t("webhook.test")}<//>
      <${Button} onClick=${() => ask("rotate")}>${t("webhook.rotate")}<//>
      <${Button} look="danger" onClick=${() => ask("delete")}>${t("webhook.delete")}<//>
    </div>
    <details open=${isOpen} onToggle=${(event) => setOpen(event.target.open)}>
      <summary>${t("webhook.deliveries")}</summary>
      ${isOpen && html`<${Deliveries} key=${sent} path=${path} onEnd=${refresh} />`}
    </details>
    ${asked && html`<${Ask} title=${t(`webhook.${asked}.ask`)} what=${t(`webhook.${asked}.what`)} yes=${t(`webhook.${asked}`)} act=${act} onClose=${() => ask(undefined)} />`}
  </section>`
}

/** Webhooks with their deliveries. */
export const Webhooks = () => {
  const { t } = useText()
  const { v1 } = useApp()
  const list = useList("/v1/webhooks", {}, v1)
  const [isMaking, setMaking] = useState(false)
  const [made, show] = useState(undefined)
  const take = (webhook) => {
    setMaking(false)
    show(webhook)
    list.reload()
  }
  return html`
    <div class="head"><h1>${t("nav.webhooks")}</h1>${!isMaking && html`<${Button} look="main" onClick=${() => setMaking(true)}>${t("webhook.new")}<//>`}</div>
    ${made && html`<${Secret} key=${made.secret} made=${made} onClose=${() => show(undefined)} />`}
    ${isMaking && html`<${NewWebhook} onMade=${take} onClose=${() => setMaking(false)} />`}
    ${list.items?.length === 0 && html`<p class="quiet">${t("webhooks.none")}</p>`}
    ${list.items?.map((webhook) => html`<${Webhook} key=${webhook.id} webhook=${webhook} onSecret=${show} onGone=${list.reload} onChange=${list.put} />`)}
    <${More} list=${list} />
  `
}
