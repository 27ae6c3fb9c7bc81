/** Words of the call log, of receipts, and of the charts of latency and error codes. */
export const calls = {
  "nav.receipt": "Receipt",
  "call.code": "Error code",
  "call.stages": "Where the time went",
  "call.stages.of": "{took}: show where the time of {id} went",
  "call.firstToken": "First token after",
  "stage.auth": "Key checked",
  "stage.body": "Body read",
  "stage.plan": "Checked and planned",
  "stage.tokenize": "Tokenized",
  "stage.limits": "Limits and balance",
  "stage.hold": "Amount held",
  "stage.queue": "Waited for the engine",
  "stage.prefill": "Prompt read",
  "stage.decode": "Answer written",
  "stage.encode": "Encoded",
  "stage.denoise": "Picture drawn",
  "stage.images": "Images read",
  "stage.audio": "Sound read",
  "stage.png": "Picture written",
  "stage.safety": "Safety filter",
  "stage.search": "Searched",
  "stage.rerank": "Ranked again",
  "stage.first": "Model, to the first token",
  "stage.after": "Model, rest of the answer",
  "stage.other": "Everything else",
  "receipt.saveJson": "Save as JSON",
  "receipt.none":
    "There is no call {id} in your account. The address may be incomplete, or the call is another account's. Requests that were refused have no receipt.",
  "receipt.early": "The call {id} has not ended yet. Its receipt is there when it has.",
  "receipt.back": "To the call log",
  "receipt.proves": "What this receipt proves",
  "receipt.proves.signed":
    "The operator of this server signed what is above: which call it was, what it used, at which prices, what was held and what it cost. Whoever changes a character breaks the signature, and the operator can't deny having signed it.",
  "receipt.proves.evidence":
    "It also names digests of the request, the answer, the model's files and the settings. With the request, rakit replay runs the call again and compares. The texts themselves are not in it.",
  "receipt.proves.plain":
    "It names no digests of request and answer: calls that failed or were cut, and endpoints other than chat, have none. So it does not prove what was answered.",
  "receipt.proves.check":
    "Anybody can check it without this server: the saved file and the public keys are enough.",
  "usage.measure.codes": "Error codes",
  "usage.measure.latency": "Latency",
  "latency.byDay": "Latency per day",
  "latency.byHour": "Latency per hour",
  "latency.none":
    "No times in this range. They are measured for calls that used a model and went well.",
  "latency.hint":
    "From the request to its first token, and to its end. Half of the calls were as fast as the median, 95 of 100 as fast as the 95th percentile; at most 10 % off. Calls that failed and lines of batches are left out.",
  "latency.first_token_ms.median": "First token, median",
  "latency.first_token_ms.p95": "First token, 95th percentile",
  "latency.duration_ms.median": "Whole, median",
  "latency.duration_ms.p95": "Whole, 95th percentile",
  "codes.byDay": "Error codes per day",
  "codes.byHour": "Error codes per hour",
  "codes.none": "Nothing failed or was refused in this range.",
  "codes.hint":
    "Calls that failed and requests that were refused, those of limits, too. client_closed: the client left. The call log filters by code.",
}
