/** Returns the value of a metric without labels, or the sum of those whose labels fit; undefined: this server has none. */
export const metricSum = (metrics, name, fits = () => true) => {
  const found = metrics.filter((one) => one.name === name && fits(one.labels))
  return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0)
}

const jobRows = (metrics) => {
  const jobs = metrics.filter(({ name }) => name === "rakit_queue_jobs")
  return [...new Set(jobs.map(({ labels }) => labels.job))].sort().map((job) => {
    const of = (state) =>
      metricSum(
        metrics,
        "rakit_queue_jobs",
        (labels) => labels.job === job && labels.state === state,
      )
    return {
      id: job,
      job,
      waiting: of("waiting"),
      later: of("delayed"),
      running: of("running"),
      failed: of("dead"),
    }
  })
}

/**
 * What waits in the database, from the metrics: batches, their lines and documents, where the
 * deployment has them, then the jobs. Failures of the first three are those that this server saw.
 */
export const workRows = (metrics) => {
  const of = (name, label, ...values) =>
    metricSum(metrics, name, (labels) => values.includes(labels[label]))
  const batches = {
    id: "batches",
    waiting: of("rakit_batches", "status", "validating"),
    running: of("rakit_batches", "status", "in_progress"),
  }
  const lines = {
    id: "lines",
    waiting: metricSum(metrics, "rakit_batch_lines_waiting"),
    failed: of("rakit_batch_lines_total", "outcome", "failed") ?? 0,
  }
  const documents = {
    id: "documents",
    waiting: of("rakit_ingest_files", "state", "waiting"),
    running: of("rakit_ingest_files", "state", "extracting", "embedding"),
    failed:
      metricSum(metrics, "rakit_ingest_files_total", ({ outcome }) => outcome !== "processed") ?? 0,
  }
  return [
    ...[batches, lines, documents].filter(({ waiting }) => waiting !== undefined),
    ...jobRows(metrics),
  ]
}
