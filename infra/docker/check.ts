// Builds the images without an engine (build-root.ts), looks at what is in them (inspect-root.ts), starts them as an engine
// would start them with everything taken away (container.ts), and uses them. Exit code 1 when anything is not as it should be.
// What it cannot prove is in infra/README.md.
import { chownSync, mkdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { findFreePort } from '../../packages/common/src/dev/dev-ports.ts'
import { startEmbeddedPostgres } from '../../packages/common/src/dev/embedded-postgres.ts'
import { buildRoot, type Image, sizeOf } from './build-root.ts'
import { environmentOf, readCompose } from './compose-file.ts'
import {
  type Container,
  cpuMilliseconds,
  type Mount,
  processFacts,
  residentMegabytes,
  runInside,
  startContainer,
} from './container.ts'
import { chosen } from './dockerfile.ts'
import { inspectRoot } from './inspect-root.ts'
import type { Trial } from './trial.ts'
import { tryAuth } from './try-auth.ts'
import { tryMedia } from './try-media.ts'

const repository = resolve(import.meta.dirname, '../..')
const folder = process.env.IMAGE_CHECK_DIR ?? join(tmpdir(), 'image-check')
const compose = readCompose()
const NO_CACHE = { NODE_DISABLE_COMPILE_CACHE: '1' }

/** What each is told otherwise than by compose.yaml. */
const SERVICES: Record<string, { other: string; env: Record<string, string>; use: typeof tryAuth }> = {
  auth: { other: 'media', env: { AUTH_MAILER_AUTOCONFIRM: 'true', AUTH_METRICS_ENABLED: 'false' }, use: tryAuth },
  media: {
    other: 'auth',
    env: {
      ...{ MEDIA_STORAGE: 'disk', MEDIA_BLOBS_DIR: '/data/blobs', MEDIA_WORK_DIR: '/data/work', MEDIA_S3_BUCKET: '' },
      ...{ MEDIA_YTDLP_PATH: '/usr/bin/yt-dlp', MEDIA_METRICS_ENABLED: 'false' },
    },
    use: tryMedia,
  },
}

const print = (line: string) => process.stdout.write(`${line}\n`)
const say = (what: string, detail: string) => print(`  ${what.padEnd(34)} ${detail}`)
const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(1)} MB`

if (process.getuid?.() !== 0) throw new Error('needs root, as whoever builds images does')
for (const name of chosen(process.argv.slice(2), Object.keys(SERVICES))) await checkImage(name)

async function checkImage(name: string): Promise<void> {
  const { other } = SERVICES[name] as (typeof SERVICES)[string]
  print(`\n${name}`)
  const image = buildRoot({
    repository,
    dockerfile: `infra/docker/${name}.Dockerfile`,
    args: { VERSION: versionOf(name), REVISION: 'check', SOURCE: 'check' },
    environment: process.env,
    folder,
    log: print,
  })
  say('labels', Object.values(image.labels).join(' · '))
  say('root', megabytes(sizeOf(image.root)))
  say('of it the base', megabytes(sizeOf(image.base)))
  say(
    'of it /app',
    `${megabytes(image.appBytes)} and ${megabytes(sizeOf(join(image.root, 'app/node_modules/.cache')))} compiled`,
  )
  const wrong = inspectRoot(image, name, other)
  for (const each of wrong) say('NOT AS IT SHOULD BE', each)
  if (wrong.length > 0) process.exitCode = 1
  else say('inspected', 'no compiler, npm, pnpm, other service, tests, .git, secrets; nothing of it can be changed')
  await useImage(name, image)
}

async function useImage(name: string, image: Image): Promise<void> {
  const { env: own, use } = SERVICES[name] as (typeof SERVICES)[string]
  const port = await findFreePort()
  const data = join(folder, `data-${name}`)
  rmSync(data, { recursive: true, force: true })
  mkdirSync(data, { recursive: true })
  const [uid = 0, gid = 0] = image.user.split(':').map(Number)
  chownSync(data, uid, gid)
  const database = join(folder, `postgres-${name}`)
  rmSync(database, { recursive: true, force: true })
  const postgres = await startEmbeddedPostgres({ dataDir: database, durable: false })
  const mounts: Mount[] = name === 'media' ? [{ from: data, to: '/data' }] : []
  let container: Container | undefined
  try {
    await makeDatabases(postgres.url)
    const env = settingsOf(name, postgres.port, { ...own, [`${name.toUpperCase()}_PORT`]: String(port) })
    await compareCompileCache(image, env, mounts)
    const started = performance.now()
    container = await startContainer(image, env, mounts)
    const base = `http://127.0.0.1:${port}`
    await waitForReady(base, container)
    say(
      'ready, migrations included',
      `${Math.round(performance.now() - started)} ms, ${cpuMilliseconds(container.pid)} ms of CPU`,
    )
    await tryRunning(image, container, { base, env, mounts, data, say }, use)
    const { code, milliseconds } = await container.stop()
    say(`stopped by ${image.stopSignal}`, `exit code ${code}, ${Math.round(milliseconds)} ms`)
    if (code !== 0) throw new Error(`ended with ${code}:\n${container.log()}`)
    const again = performance.now()
    container = await startContainer(image, env, mounts)
    await waitForReady(base, container)
    say(
      'ready, database as it was',
      `${Math.round(performance.now() - again)} ms, ${cpuMilliseconds(container.pid)} ms of CPU`,
    )
  } finally {
    await container?.stop()
    await postgres.stop()
  }
}

async function tryRunning(image: Image, container: Container, trial: Trial, use: typeof tryAuth): Promise<void> {
  const facts = processFacts(container.pid)
  const { Uid = '', CapEff = '', NoNewPrivs } = facts
  if (!/^10001\s/.test(Uid) || !/^0+$/.test(CapEff) || NoNewPrivs !== '1') throw new Error(JSON.stringify(facts))
  say('runs', `uid 10001, no capabilities, no new privileges, ${residentMegabytes(container.pid)} MB resident`)
  const writes = await runInside(image, trial.env, trial.mounts, [
    'sh',
    '-c',
    'touch /app/x; touch /usr/x; touch /tmp/x && echo tmp',
  ])
  if (writes.output !== 'tmp\n' || !/Read-only/.test(writes.errors))
    throw new Error(`writable: ${JSON.stringify(writes)}`)
  say('file system', 'read-only, but for /tmp')
  const health = await runInside(image, trial.env, trial.mounts, image.healthcheck)
  if (health.code !== 0) throw new Error(`HEALTHCHECK ended with ${health.code}: ${health.errors}`)
  const elsewhere = { ...trial.env, AUTH_PORT: '1', MEDIA_PORT: '1' }
  const refused = await runInside(image, elsewhere, trial.mounts, image.healthcheck)
  if (refused.code !== 1) throw new Error(`HEALTHCHECK of nobody ended with ${refused.code}`)
  say('HEALTHCHECK', `0 in ${Math.round(health.milliseconds)} ms; 1 where nobody answers`)
  await use(image, trial)
  for (const line of container
    .log()
    .split('\n')
    .filter((line) => /"level":"(warn|error|fatal)"|sandbox/.test(line))) {
    say('log', line.slice(0, 300))
  }
}

/** The compile cache of the build is found and taken, read-only as it is, and what it saves. */
async function compareCompileCache(image: Image, env: Record<string, string>, mounts: Mount[]): Promise<void> {
  const command = ['node', 'src/cli.ts', 'config', 'check']
  const told = await runInside(image, { ...env, NODE_DEBUG_NATIVE: 'COMPILE_CACHE' }, mounts, command)
  const count = (pattern: RegExp) => told.errors.match(pattern)?.length ?? 0
  const [taken, missed] = [count(/cache for .* was accepted/g), count(/no such file or directory/g)]
  const [withIt, without] = [
    await cpuSeconds(image, env, mounts),
    await cpuSeconds(image, { ...env, ...NO_CACHE }, mounts),
  ]
  say(
    'CPU of `config check`',
    `${withIt} s, without the compile cache ${without} s; ${taken} modules from it, ${missed} not in it`,
  )
  if (taken === 0) throw new Error(`the compile cache is not used:\n${told.errors.slice(0, 2000)}`)
}

/** The least of five: time on the wall says more about what else the machine does. */
async function cpuSeconds(image: Image, env: Record<string, string>, mounts: Mount[]): Promise<string> {
  const runs = []
  for (let round = 0; round < 5; round++) {
    const measured = await runInside(image, env, mounts, [
      'sh',
      '-c',
      'node src/cli.ts config check >/dev/null && times',
    ])
    const [, minutes, seconds, , system] = /\n(\d+)m([\d.]+)s (\d+)m([\d.]+)s\s*$/.exec(measured.output) ?? []
    if (measured.code !== 0) throw new Error(`config check ended with ${measured.code}: ${measured.errors}`)
    runs.push(Number(minutes) * 60 + Number(seconds) + Number(system))
  }
  return Math.min(...runs).toFixed(2)
}

/** As much of `pg`, which belongs to common, as is used. */
interface Postgres {
  Client: new (options: {
    connectionString: string
  }) => {
    connect(): Promise<unknown>
    query(statement: string): Promise<unknown>
    end(): Promise<void>
  }
}

/** By what compose.yaml makes them with. */
async function makeDatabases(url: string): Promise<void> {
  const { Client }: Postgres = createRequire(join(repository, 'packages/common/package.json'))('pg')
  const client = new Client({ connectionString: url })
  await client.connect()
  // One statement at a time, as psql sends them: none of them may be in a transaction with another.
  for (const statement of compose.configs['databases.sql']?.content.split(/;\s*\n/) ?? []) {
    if (statement.trim()) await client.query(statement)
  }
  await client.end()
}

/** Those of compose.yaml, with this machine's database; then what the check wants otherwise. */
function settingsOf(name: string, port: number, own: Record<string, string>): Record<string, string> {
  const settings = environmentOf(compose.services[name] as (typeof compose.services)[string])
  for (const [key, value] of Object.entries(settings))
    settings[key] = value.replace('@postgres:5432/', `@127.0.0.1:${port}/`)
  return { ...settings, ...own }
}

async function waitForReady(base: string, container: Container): Promise<void> {
  const deadline = performance.now() + 30_000
  while (
    !(await fetch(`${base}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    ))
  ) {
    if (performance.now() > deadline) throw new Error(`not ready:\n${container.log()}`)
    await sleep(10)
  }
}

function versionOf(name: string): string {
  return JSON.parse(readFileSync(join(repository, 'services', name, 'package.json'), 'utf8')).version
}
