import { useApp, useText } from "../app.js"
import { bytes, count, fixed, percent } from "../format.js"
import { html } from "../html.js"
import { Moment } from "../parts/amount.js"
import { Bar, Figure } from "../parts/figure.js"
import { useLoad } from "../parts/load.js"
import { Loading, ProblemNotice } from "../parts/notice.js"
import { usePoll } from "../parts/poll.js"
import { Table } from "../parts/table.js"
import { metricSum, workRows } from "../server-work.js"
import { ServerModels } from "./admin-server-models.js"

const Head = ({ server }) => {
  const { t } = useText()
  const { name, version, role, status, process } = server
  return html`<section class="card" aria-labelledby="server">
    <div class="head"><h2 id="server">${name}</h2><span class=${`badge ${status}`} role="status">${t(`server.${status}`)}</span></div>
    <p>${t("server.about", { version, role: t(`server.role.${role}`) })} ${t("server.since")} <${Moment} at=${process.started_at} />.</p>
    <p class="hint">${t("server.which", { host: process.hostname, pid: process.pid })}</p>
  </section>`
}

const Checks = ({ checks }) => {
  const { t } = useText()
  const columns = [
    { key: "name", label: t("server.part"), cell: ({ name }) => name },
    {
      key: "state",
      label: t("account.state"),
      cell: ({ ok }) =>
        html`<span class=${`badge ${ok ? "live" : "failed"}`}>${t(ok ? "server.ok" : "server.broken")}</span>`,
    },
    {
      key: "reason",
      label: t("server.reason"),
      cell: ({ ok, reason }) => reason ?? (ok ? "" : "–"),
    },
  ]
  return html`<section class="card" aria-labelledby="health">
    <h2 id="health">${t("server.health")}</h2>
    ${
      checks.length === 0
        ? html`<p class="quiet">${t("server.noChecks")}</p>`
        : html`<${Table} caption=${t("server.health")} columns=${columns} rows=${checks} rowKey=${({ name }, index) => `${name} ${index}`} />`
    }
  </section>`
}

const Load = ({ process: { memory, cores, cpu_cores, event_loop, disk } }) => {
  const { t, language } = useText()
  const size = (value) => bytes(value, language)
  const memoryPart = memory.rss_bytes / memory.limit_bytes
  const used = disk && disk.total_bytes - disk.free_bytes
  return html`<div class="figures four">
    <${Figure} label=${t("server.memory")} value=${size(memory.rss_bytes)} bar=${html`<${Bar} part=${memoryPart} label=${t("server.memory")} />`}
      hint=${t("server.memory.hint", { limit: size(memory.limit_bytes), heap: size(memory.heap_used_bytes), external: size(memory.external_bytes) })} />
    <${Figure} label=${t("server.cpu")} value=${fixed(cpu_cores, language, 2)} bar=${html`<${Bar} part=${cpu_cores / cores} label=${t("server.cpu")} />`} hint=${t("server.cpu.hint", { cores: count(cores, language) })} />
    <${Figure} label=${t("server.loop")} value=${percent(event_loop, language)} bar=${html`<${Bar} part=${event_loop} label=${t("server.loop")} />`} hint=${t("server.loop.hint")} />
    ${disk && html`<${Figure} label=${t("server.disk")} value=${size(disk.free_bytes)} bar=${html`<${Bar} part=${used / disk.total_bytes} label=${t("server.disk")} />`} hint=${t("server.disk.hint", { total: size(disk.total_bytes) })} />`}
  </div>`
}

const Work = ({ metrics }) => {
  const { t, language } = useText()
  const rows = workRows(metrics)
  const number = (key) => ({
    key,
    label: t(`work.${key}`),
    number: true,
    cell: (row) => (row[key] === undefined ? "–" : count(row[key], language)),
  })
  const columns = [
    {
      key: "what",
      label: t("work.what"),
      cell: ({ id, job }) => (job ? html`<code>${job}</code>` : t(`work.${id}`)),
    },
    ...["waiting", "later", "running", "failed"].map(number),
  ]
  return html`<section class="card" aria-labelledby="work">
    <h2 id="work">${t("work")}</h2>
    <p class="hint">${t("work.hint")}</p>
    ${rows.length === 0 ? html`<p class="quiet">${t("work.none")}</p>` : html`<${Table} caption=${t("work")} columns=${columns} rows=${rows} />`}
  </section>`
}

/** What is open at this moment, and the connections to the database. */
const Now = ({ metrics }) => {
  const { t, language } = useText()
  const value = (...of) => metricSum(metrics, ...of)
  const pool = value("rakit_db_client_connection_count", ({ state }) => state === "used")
  const rows = [
    ["requests", value("rakit_http_requests_in_flight")],
    ["streams", value("rakit_http_streams_open")],
    ["pool", pool, value("rakit_db_client_connection_max")],
    ["poolWaiting", value("rakit_db_client_connection_pending_requests")],
    ["settlements", value("rakit_settlements_waiting")],
  ].filter(([, now]) => now !== undefined)
  return html`<section class="card" aria-labelledby="now">
    <h2 id="now">${t("server.now")}</h2>
    <dl class="facts">${rows.map(
      ([name, now, most]) =>
        html`<div key=${name}><dt>${t(`server.now.${name}`)}</dt><dd>${count(now, language)}${most !== undefined && ` / ${count(most, language)}`}</dd></div>`,
    )}</dl>
  </section>`
}

/** The state of the server that answers, read again every few seconds while the page is looked at. */
export const AdminServer = () => {
  const { api } = useApp()
  const { data, problem, busy, reload } = useLoad(() => api.get("/admin/server"), [])
  usePoll(true, reload)
  return html`
    <${ProblemNotice} problem=${problem} />
    ${busy && !data && html`<section class="card"><${Loading} /></section>`}
    ${
      data &&
      html`
      <${Head} server=${data} />
      <${Load} process=${data.process} />
      <${Checks} checks=${data.checks} />
      <${ServerModels} models=${data.models} />
      <${Work} metrics=${data.metrics} />
      <${Now} metrics=${data.metrics} />`
    }
  `
}
