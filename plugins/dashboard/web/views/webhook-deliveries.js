import { useEffect, useState } from "preact/hooks"
import { useApp, useText } from "../app.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Button } from "../parts/button.js"
import { useList } from "../parts/list.js"
import { More } from "../parts/more.js"
import { ProblemNotice } from "../parts/notice.js"
import { usePoll } from "../parts/poll.js"

const looks = { succeeded: "good", giveup: "bad", pending: "" }

const Attempt = ({ attempt }) => {
  const { t } = useText()
  return html`<li>
    <p><${Moment} at=${attempt.at} /> · <b>${attempt.status_code ?? t("delivery.unanswered")}</b> · ${attempt.duration_ms} ms${attempt.error && html` · <span class="bad">${attempt.error}</span>`}</p>
    ${attempt.response_body && html`<pre class="code" tabindex="0" aria-label=${t("delivery.answer")}>${attempt.response_body}</pre>`}
  </li>`
}

const Delivery = ({ delivery, path, onSent }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const [problem, refuse] = useState(undefined)
  const again = () => v1.post(`${path}/deliveries/${delivery.id}/redeliver`).then(onSent, refuse)
  const at = delivery.attempts.at(-1)?.at
  return html`<li><details>
    <summary>${delivery.event} · <b class=${looks[delivery.status]}>${t(`delivery.${delivery.status}`)}</b> <span class="quiet"><${Moment} at=${at} /></span></summary>
    <p class="quiet">${t("delivery.body")}</p>
    <pre class="code" tabindex="0" aria-label=${t("delivery.body")}>${delivery.request_body}</pre>
    <p class="quiet">${t("delivery.attempts")}</p>
    <ol class="attempts">${delivery.attempts.map((attempt, index) => html`<${Attempt} key=${index} attempt=${attempt} />`)}</ol>
    ${delivery.next_attempt_at && html`<p class="quiet">${t("delivery.next")} <${Moment} at=${delivery.next_attempt_at} /></p>`}
    <${ProblemNotice} problem=${problem} />
    <${Button} onClick=${again}>${t("delivery.again")}<//>
  </details></li>`
}

/** What was sent to a webhook, with bodies and answers; followed while one waits. `onEnd`: none waits, or none any more. */
export const Deliveries = ({ path, onEnd }) => {
  const { t } = useText()
  const { v1 } = useApp()
  const list = useList(`${path}/deliveries`, {}, v1)
  const isWaiting = list.items?.some(({ status }) => status === "pending") ?? false
  usePoll(isWaiting, list.refresh)
  useEffect(() => {
    if (list.items && !isWaiting) onEnd()
  }, [list.items])
  return html`
    ${list.items?.length === 0 && html`<p class="quiet">${t("delivery.none")}</p>`}
    <ul class="deliveries">${list.items?.map((one) => html`<${Delivery} key=${one.id} delivery=${one} path=${path} onSent=${list.refresh} />`)}</ul>
    <${More} list=${list} />
  `
}
