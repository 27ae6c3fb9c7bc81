#!/bin/sh
# SGLang servers behind its router (the SGLang Model Gateway), on the machines of SGLANG_WORKERS.
#   SGLANG_WORKERS="http://10.0.0.5:30000 http://10.0.0.6:30000" SGLANG_KEY=... sh sglang-router.sh
# On each machine with a GPU:
#   python -m sglang.launch_server --model-path Qwen/Qwen3-8B --served-model-name qwen3-8b \
#     --host 0.0.0.0 --port 30000 --api-key "$SGLANG_KEY" --context-length 32768 \
#     --tool-call-parser qwen25 --reasoning-parser qwen3
# In Rakit: { url: "http://router:30001", model: qwen3-8b, kind: sglang, key: "${SGLANG_KEY}" }, affinity: false, retries: 1.
set -eu
: "${SGLANG_WORKERS:?the URLs of the servers, with spaces between them}"
: "${SGLANG_KEY:?the key of the servers and of the router}"

# cache_aware: prompts go where their beginning is cached, unless the load is uneven
# shellcheck disable=SC2086
exec python -m sglang_router.launch_router \
  --host 0.0.0.0 --port 30001 \
  --worker-urls $SGLANG_WORKERS \
  --policy cache_aware \
  --api-key "$SGLANG_KEY" \
  --disable-retries \
  --request-timeout-secs 600
