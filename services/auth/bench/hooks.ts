// Time that a hook adds to a sign-in and to a refresh, beside its own: a bare request, or a bare call of the function.
// Each hook answers at once. Alone: `node bench/hooks.ts`, on an embedded PostgreSQL and without a row in results/.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Worker } from 'node:worker_threads'
import { median } from '@services/common/bench/median'
import { startReport } from '@services/common/bench/report'
import { startEmbeddedPostgres } from '@services/common/dev/embedded-postgres'
import pg from 'pg'
import { createUsers, refreshes, signIns, startService } from './load.ts'

/** Calls of each kind, which alternate so that other load on the machine affects all. */
const CALLS = Number(process.env.BENCH_HOOK_CALLS || 400)
const WARM_UPS = 200

/** The cheapest hash: the spread of a usual one would hide what is measured. */
const CHEAP_HASHES = { AUTH_PASSWORD_HASH_MEMORY_KIB: '8' }

const FUNCTION = 'bench_hook'

const hookAt = (uri: string, isUnsigned: boolean) => ({
  AUTH_HOOK_CUSTOM_ACCESS_TOKEN_ENABLED: 'true',
  AUTH_HOOK_CUSTOM_ACCESS_TOKEN_URI: uri,
  AUTH_HOOK_CUSTOM_ACCESS_TOKEN_UNSIGNED: String(isUnsigned),
})

/** Reports the time that hooks of tokens add, against a bare question. */
export async function measureHooks(report: ReturnType<typeof startReport>, databaseUrl: string): Promise<void> {
  const pool = new pg.Pool({ connectionString: databaseUrl, max: 1 })
  await pool.query(`create or replace function ${FUNCTION}(event jsonb) returns jsonb language sql as 'select event'`)
  const receiver = await startReceiver()
  const services = {
    without: await startService(databaseUrl, CHEAP_HASHES),
    http: await startService(databaseUrl, { ...CHEAP_HASHES, ...hookAt(receiver.url, true) }),
    function: await startService(databaseUrl, {
      ...CHEAP_HASHES,
      ...hookAt(`pg-functions://postgres/public/${FUNCTION}`, false),
    }),
  }
  try {
    const payload = JSON.stringify({ user_id: 'x', claims: { sub: 'x', app_metadata: { note: 'x'.repeat(500) } } })
    const bare = {
      http: async () => void (await (await fetch(receiver.url, { method: 'POST', body: payload })).text()),
      function: async () =>
        void (await pool.query({ name: 'bare', text: `select ${FUNCTION}($1)`, values: [payload] })),
    }
    for (const [name, callsOf] of Object.entries({ 'sign-in': signIns, refresh: refreshes })) {
      const callOf = async (kind: keyof typeof services) =>
        callsOf(services[kind].base, await createUsers(services[kind].base, 1, `hook-${kind}-${name}`))
      const calls = {
        without: await callOf('without'),
        http: await callOf('http'),
        function: await callOf('function'),
        bareHttp: bare.http,
        bareFunction: bare.function,
      }
      const ms = await mediansOf(calls)
      const row = (kind: 'http' | 'function', against: string, own: number) =>
        report.row({
          ...{ id: `hook-${kind}-${name}`, what: `a ${name}, time by a hook (${kind})`, against, unit: 'ms' },
          ...{ ours: ms[kind] - ms.without, theirs: own, compared: 'difference', goal: { atMost: 2 } },
        })
      row('http', 'a bare request', ms.bareHttp)
      row('function', 'a bare call', ms.bareFunction)
    }
  } finally {
    for (const { stop } of Object.values(services)) await stop()
    await receiver.stop()
    await pool.end()
  }
}

/** Median time of each call, in ms. */
async function mediansOf<Kind extends string>(calls: Record<Kind, () => Promise<void>>) {
  const kinds = Object.entries<() => Promise<void>>(calls).map(([kind, call]) => ({
    kind,
    call,
    times: [] as number[],
  }))
  for (let turn = -WARM_UPS; turn < CALLS; turn++) {
    for (const { call, times } of kinds) {
      const begun = performance.now()
      await call()
      if (turn >= 0) times.push(performance.now() - begun)
    }
  }
  return Object.fromEntries(kinds.map(({ kind, times }) => [kind, median(times)])) as Record<Kind, number>
}

/** Answers each question with its own claims, in a thread: this one makes the load. */
async function startReceiver() {
  const program = `
    const { createServer } = require('node:http')
    const server = createServer((request, response) => {
      const chunks = []
      request.on('data', (chunk) => chunks.push(chunk)).on('end', () => {
        const { claims } = JSON.parse(Buffer.concat(chunks).toString())
        response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ claims }))
      })
    })
    server.listen(0, '127.0.0.1', () => require('node:worker_threads').parentPort.postMessage(server.address().port))`
  const worker = new Worker(program, { eval: true })
  const port = await new Promise<number>((resolve, reject) => worker.once('message', resolve).once('error', reject))
  return { url: `http://127.0.0.1:${port}/`, stop: () => worker.terminate() }
}

if (import.meta.main) {
  const dataDir = await mkdtemp(join(tmpdir(), 'bench-postgres-'))
  const postgres = await startEmbeddedPostgres({ dataDir, database: 'bench' })
  try {
    await measureHooks(startReport('auth', []), postgres.url)
  } finally {
    await postgres.stop()
    await rm(dataDir, { recursive: true, force: true })
  }
}
