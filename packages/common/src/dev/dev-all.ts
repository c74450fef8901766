// The root's `pnpm dev`: services, inbox, one banner; Ctrl-C stops all. Services are found by folder, so that one can
// be deleted. A service: dev-service.ts; ready message: dev-child.ts.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { readEnvFile } from '../config/variables.ts'
import { type BannerSection, formatBanner } from './dev-child.ts'
import { findTakenPorts, portInUseMessage, suggestPorts, type WantedPort } from './dev-ports.ts'
import { type DevService, startDevService } from './dev-service.ts'
import {
  COMPILE_CACHE,
  dataPrefix,
  dataRoot,
  describeDev,
  PORTS,
  quoted,
  REPOSITORY,
  readPort,
  wantsHelp,
} from './dev-settings.ts'
import type { Inbox } from './inbox.ts'
import { describePlace, findRunning, untilStopped } from './running.ts'

const [folder] = process.argv.slice(2).filter((arg) => !arg.startsWith('-'))
const root = resolve(folder ?? REPOSITORY)
const data = dataRoot(process.env, root)
const print = (line: string) => process.stdout.write(`${line}\n`)

/** A closed terminal must not interrupt the shutdown. */
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

if (wantsHelp(process.argv)) print(describeDev())
else process.exit(await runAll())

async function runAll(): Promise<number> {
  const present = (['auth', 'media'] as const).filter((name) => existsSync(join(root, 'services', name, 'src/dev.ts')))
  if (present.length === 0) {
    print(`No service to start under ${join(root, 'services')}.`)
    return 1
  }
  const interrupted = waitForSignal()
  let inbox: Inbox | undefined
  const services: DevService[] = []
  try {
    const auth = settingsOf('auth')
    const wantsInbox = present.includes('auth') && !(auth.AUTH_SMTP_HOST || auth.SMTP_HOST)
    const inboxPlaces = wantsInbox ? [PORTS.inboxWeb, PORTS.inboxSmtp] : []
    const ports = [
      ...present.map((name) => ({ place: PORTS[name], env: settingsOf(name) })),
      ...inboxPlaces.map((place) => ({ place, env: process.env })),
    ].map(({ place, env }) => ({ port: readPort(place, env), variable: place.variable }))
    await refuseSecond(present, ports)
    await refuseTakenPorts(ports)
    const env = { NODE_COMPILE_CACHE: COMPILE_CACHE, ...process.env, ...dataSettings(), ...inboxSettings(wantsInbox) }
    for (const name of present) {
      const prefix = `${name.padEnd(5)} | `
      services.push(startDevService(name, join(root, 'services', name), env, (line) => print(prefix + line)))
    }
    // Loaded while the services start; they send no mail yet.
    if (wantsInbox) inbox = await openInbox()
    return await superviseUntilEnd(services, interrupted, inbox)
  } catch (error) {
    print(error instanceof Error ? error.message : String(error))
    return 1
  } finally {
    await Promise.all(services.map((service) => service.stop()))
    await inbox?.close()
  }
}

async function refuseSecond(names: string[], ports: WantedPort[]): Promise<void> {
  const found = await Promise.all(names.map((name) => findRunning(join(data, name))))
  const running = (await Promise.all(found.filter((one) => one !== undefined).map(untilStopped))).filter(
    (one) => one !== undefined,
  )
  if (running.length === 0) return
  throw new Error(
    `dev already runs here${describePlace(running)}. Stop it with Ctrl-C in its terminal, or start a second one:\n` +
      `  DEV_DATA_DIR=${quoted(`${data}-2`)} ${await suggestPorts(ports)} npx -y pnpm@12 dev`,
  )
}

async function refuseTakenPorts(ports: WantedPort[]): Promise<void> {
  const taken = await findTakenPorts(ports)
  if (taken.length === 0) return
  const remedy = `Free ones: ${await suggestPorts(taken, ports)} npx -y pnpm@12 dev`
  throw new Error([...taken.map(portInUseMessage), remedy].join('\n'))
}

async function openInbox(): Promise<Inbox> {
  const { startInbox } = await import('./inbox.ts')
  return startInbox({
    smtpPort: readPort(PORTS.inboxSmtp, process.env),
    webPort: readPort(PORTS.inboxWeb, process.env),
    file: join(data, 'inbox/messages.json'),
  })
}

/** Returns the exit code: 0 for a clean stop on request. */
async function superviseUntilEnd(services: DevService[], interrupted: Promise<void>, inbox?: Inbox): Promise<number> {
  let isStopping = false
  Promise.all(services.map((service) => service.ready)).then(
    (lines) => isStopping || print(formatBanner(describeAll(services, lines, inbox))),
    () => {}, // `failed` reports it
  )
  const failed = Promise.race(services.map(async (service) => ({ service, how: (await service.ended).how })))
  const failure = await Promise.race([interrupted, failed])
  isStopping = true
  print(failure ? `${failure.service.name} ended unexpectedly: ${failure.how}. Stopping the rest.` : 'Stopping.')
  await Promise.all(services.map((service) => service.stop()))
  const allClean = await reportEnds(services.filter((service) => service !== failure?.service))
  return allClean && !failure ? 0 : 1
}

async function reportEnds(services: DevService[]): Promise<boolean> {
  const ends = await Promise.all(services.map(async ({ name, ended }) => ({ name, ...(await ended) })))
  for (const { name, isClean, how } of ends) {
    if (!isClean) print(`${name} did not end well: ${how}.`)
  }
  return ends.every(({ isClean }) => isClean)
}

function describeAll(services: DevService[], lines: string[][], inbox: Inbox | undefined): BannerSection[] {
  const sections = services.map(({ name }, index) => ({ title: name, lines: lines[index] ?? [] }))
  if (inbox) sections.push({ title: 'inbox', lines: [inbox.webUrl] })
  const title = `A walk through it: ${dataPrefix(process.env)}npx -y pnpm@12 demo      Ctrl-C stops everything.`
  return [...sections, { title, lines: [] }]
}

/** Resolves at the first signal. Later ones have no effect: pnpm repeats the terminal's Ctrl-C. */
function waitForSignal(): Promise<void> {
  const { promise, resolve: settle } = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => settle())
  return promise
}

function settingsOf(name: string): NodeJS.ProcessEnv {
  return { ...readEnvFile(join(root, 'services', name, '.env')), ...process.env }
}

/** Absolute data folder: services run in other folders, and a service's own `.env` must not change it. */
function dataSettings(): Record<string, string> {
  return process.env.DEV_DATA_DIR ? { DEV_DATA_DIR: data } : {}
}

/** Settings of auth: its mail server and the URL of the inbox. */
function inboxSettings(wantsInbox: boolean): Record<string, string> {
  if (!wantsInbox) return {}
  return {
    AUTH_SMTP_HOST: '127.0.0.1',
    AUTH_SMTP_PORT: String(readPort(PORTS.inboxSmtp, process.env)),
    DEV_INBOX_URL: `http://127.0.0.1:${readPort(PORTS.inboxWeb, process.env)}`,
  }
}
