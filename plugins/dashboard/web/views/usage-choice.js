import { useApp, useText } from "../app.js"
import { count, dayMs, dayText } from "../format.js"
import { html } from "../html.js"
import { Button } from "../parts/button.js"
import { Check, Field } from "../parts/field.js"

export const groups = ["day", "key", "model", "endpoint"]

/** What the chart shows, by name, of a row of usage. */
export const measures = {
  cost: ({ cost_idr }) => cost_idr,
  requests: ({ requests }) => requests,
  tokens: ({ input_tokens, output_tokens }) => input_tokens + output_tokens,
  errors: ({ errors }) => errors,
}

/** Charts that are not sums of usage. */
export const timelines = ["codes", "latency"]

const presets = [1, 7, 30, 90]

/** Ranges that end today. */
export const Presets = ({ choice, onChoose }) => {
  const { t, language } = useText()
  const { nowMs } = useApp()
  const to = dayText(nowMs())
  const fromOf = (days) => dayText(nowMs() - (days - 1) * dayMs)
  return html`<div class="actions" role="group" aria-label=${t("range")}>
    ${presets.map((days) => html`<${Button} key=${days} aria-pressed=${choice.to === to && choice.from === fromOf(days)} onClick=${() => onChoose({ ...choice, from: fromOf(days), to })}>${days === 1 ? t("range.today") : t("range.days", { count: count(days, language) })}<//>`)}
  </div>`
}

/** Changes take effect at once; there is no submit button. */
export const UsageChoice = ({ choice, onChoose, problem }) => {
  const { t } = useText()
  const put = (name) => (event) =>
    event.target.value && onChoose({ ...choice, [name]: event.target.value })
  const toggle = (group) => () =>
    onChoose({
      ...choice,
      group_by: choice.group_by.includes(group)
        ? choice.group_by.filter((one) => one !== group)
        : [...choice.group_by, group],
    })
  return html`<${Presets} choice=${choice} onChoose=${onChoose} /><div class="choice" role="group" aria-label=${t("usage.choice")}>
    <${Field} label=${t("from")} name="from" problem=${problem} type="date" value=${choice.from} onChange=${put("from")} />
    <${Field} label=${t("to")} name="to" problem=${problem} type="date" value=${choice.to} onChange=${put("to")} />
    <${Field} label=${t("mode")} as="select" value=${choice.mode} onChange=${put("mode")}>
      <option value="live">${t("key.kind.live")}</option>
      <option value="test">${t("key.kind.test")}</option>
    <//>
    <${Field} label=${t("usage.measure")} as="select" value=${choice.measure} onChange=${put("measure")}>
      ${[...Object.keys(measures), ...timelines].map((name) => html`<option key=${name} value=${name}>${t(`usage.measure.${name}`)}</option>`)}
    <//>
    <fieldset class="checks"><legend>${t("groupBy")}</legend>
      ${groups.map((group) => html`<${Check} key=${group} label=${t(`group.${group}`)} checked=${choice.group_by.includes(group)} onChange=${toggle(group)} />`)}
    </fieldset>
  </div>`
}
