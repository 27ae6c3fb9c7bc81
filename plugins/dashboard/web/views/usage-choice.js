import { useText } from "../app.js"
import { html } from "../html.js"
import { Check, Field } from "../parts/field.js"

export const groups = ["day", "key", "model", "endpoint"]

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
  return html`<div class="choice" role="group" aria-label=${t("usage.choice")}>
    <${Field} label=${t("from")} name="from" problem=${problem} type="date" value=${choice.from} onChange=${put("from")} />
    <${Field} label=${t("to")} name="to" problem=${problem} type="date" value=${choice.to} onChange=${put("to")} />
    <${Field} label=${t("mode")} as="select" value=${choice.mode} onChange=${put("mode")}>
      <option value="live">${t("key.kind.live")}</option>
      <option value="test">${t("key.kind.test")}</option>
    <//>
    <fieldset class="checks"><legend>${t("groupBy")}</legend>
      ${groups.map((group) => html`<${Check} key=${group} label=${t(`group.${group}`)} checked=${choice.group_by.includes(group)} onChange=${toggle(group)} />`)}
    </fieldset>
  </div>`
}
