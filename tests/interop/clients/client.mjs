// Checks a server with http2 of Node: node client.mjs URL AUTHORITY.pem
import http2 from "node:http2"
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { setTimeout as sleep } from "node:timers/promises"

const [url, authority] = process.argv.slice(2)
const session = http2.connect(url, { ca: readFileSync(authority) })
const name = `node${url}`

function begin(path, fields = {}, options = {}) {
    const stream = session.request({ ":path": path, ...fields }, options)
    const head = new Promise((resolve, reject) => {
        stream.on("response", (found) =>
            found[":status"] === 200 ? resolve() : reject(new Error(`status ${found[":status"]}`)))
        stream.on("error", reject)
    })
    return { stream, head }
}

async function text(path, fields, body, trailers) {
    const { stream, head } = begin(path, fields, { waitForTrailers: trailers !== undefined })
    stream.on("wantTrailers", () => stream.sendTrailers(trailers))
    body === undefined || stream.end(body)
    await head
    const pieces = []
    for await (const piece of stream) pieces.push(piece)
    return Buffer.concat(pieces).toString()
}

function same(found, expected) {
    if (found !== expected) throw new Error(`got ${JSON.stringify(found)}`)
}

async function upload(trailers) {
    const body = Buffer.alloc(1_000_000, "0123456789")
    const digest = createHash("sha256").update(body).digest("hex")
    same(await text("/digest", { ":method": "POST" }, body, trailers), `${body.length} ${digest}\n`)
}

const checks = {
    get: async () => same(await text("/hello"), "hello\n"),
    post: () => upload(),
    trailers: () => upload({ "x-sum": "1" }),
    parallel: async () => {
        const found = await Promise.all(Array.from({ length: 100 }, () => text("/hello")))
        found.forEach((each) => same(each, "hello\n"))
    },
    hints: async () => {
        const { stream, head } = begin("/hints")
        const seen = []
        stream.on("headers", (fields) => seen.push(`${fields[":status"]} ${fields.link}`))
        await head
        stream.resume()
        same(seen.join(), "103 </style.css>; rel=preload")
    },
    events: async () => {
        const { stream, head } = begin(`/events?${name}`)
        await head
        const pieces = []
        for await (const piece of stream) {
            pieces.push(piece)
            same(await text(`/next?${name}`), "hello\n")
        }
        same(Buffer.concat(pieces).toString(), "data: 1\n\ndata: 2\n\n")
    },
    cancel: async () => {
        const { stream, head } = begin(`/endless?${name}`)
        await head
        await new Promise((resolve) => stream.once("data", resolve))
        stream.close(http2.constants.NGHTTP2_CANCEL)
        for (let round = 0; (await text(`/left?${name}`)) !== "yes\n"; round++) {
            if (round === 1000) throw new Error("the server goes on")
            await sleep(50)
        }
    },
    download: async () => {
        const { stream, head } = begin("/large")
        await head
        let size = 0
        for await (const piece of stream) {
            size += piece.length
            await sleep(2)
        }
        same(size, 10_000_000)
    },
}

for (const [title, check] of Object.entries(checks)) {
    try {
        await check()
        console.log(title, "ok")
    } catch (error) {
        console.log(title, String(error.message))
    }
}
session.close()
