// What the root's `pnpm dev` runs: the inbox, then every service there is, then one banner; Ctrl-C stops all of it.
// The one rule: services are found by their folder, so that one can be deleted from the repository.
// One service's process: dev-service.ts. What a service says when it is ready: dev-child.ts.
import { existsSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type BannerSection, formatBanner } from './banner.ts'
import { requireFreePorts } from './dev-ports.ts'
import { type DevService, startDevService } from './dev-service.ts'
import { type Inbox, startInbox } from './inbox.ts'

const SERVICES = [
  { name: 'auth', portVariable: 'AUTH_PORT', defaultPort: 8081 },
  { name: 'media', portVariable: 'MEDIA_PORT', defaultPort: 8082 },
]

const root = resolve(process.argv[2] ?? join(import.meta.dirname, '../../../..'))
const print = (line: string) => process.stdout.write(`${line}\n`)

/** The terminal may be gone before we are; what we had to say then is lost, the shutdown is not. */
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

process.exit(await runAll())

async function runAll(): Promise<number> {
  const present = SERVICES.filter(({ name }) => existsSync(join(root, 'services', name, 'src/dev.ts')))
  if (present.length === 0) {
    print(`No service to start under ${join(root, 'services')}.`)
    return 1
  }
  const interrupted = waitForSignal()
  let inbox: Inbox | undefined
  const services: DevService[] = []
  try {
    const wantsInbox = present.some(({ name }) => name === 'auth') && !readSetting('AUTH_SMTP_HOST', 'SMTP_HOST')
    const web = { port: readPort('INBOX_WEB_PORT', 8025), variable: 'INBOX_WEB_PORT' }
    const smtp = { port: readPort('INBOX_SMTP_PORT', 1025), variable: 'INBOX_SMTP_PORT' }
    const ports = present.map(({ portVariable, defaultPort }) => ({
      port: readPort(portVariable, defaultPort),
      variable: portVariable,
    }))
    await requireFreePorts(wantsInbox ? [...ports, web, smtp] : ports)
    if (wantsInbox) inbox = await startInbox({ smtpPort: smtp.port, webPort: web.port })
    const env = { ...process.env, ...smtpSettings(inbox) }
    for (const { name } of present) {
      const prefix = `${name.padEnd(5)} | `
      services.push(startDevService(name, join(root, 'services', name), env, (line) => print(prefix + line)))
    }
    return await superviseUntilEnd(services, interrupted, inbox)
  } catch (error) {
    print(error instanceof Error ? error.message : String(error))
    return 1
  } finally {
    await inbox?.close()
  }
}

/** Returns the exit code: 0 when everything was stopped on request and went quietly. */
async function superviseUntilEnd(services: DevService[], interrupted: Promise<void>, inbox?: Inbox): Promise<number> {
  let isStopping = false
  Promise.all(services.map((service) => service.ready)).then(
    (lines) => isStopping || print(formatBanner(describeAll(services, lines, inbox))),
    () => {}, // `failed` says it
  )
  const failed = Promise.race(services.map(async ({ name, ended }) => `${name} ended by itself: ${(await ended).how}.`))
  const failure = await Promise.race([interrupted, failed])
  isStopping = true
  print(failure ? `${failure} Stopping the rest.` : 'Stopping.')
  await Promise.all(services.map((service) => service.stop()))
  const allClean = await reportEnds(services)
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
  return [...sections, { title: 'A walk through it: npx -y pnpm@12 demo      Ctrl-C stops everything.', lines: [] }]
}

/** The first of the signals. Later ones change nothing: pnpm repeats the terminal's Ctrl-C, and stopping has an end. */
function waitForSignal(): Promise<void> {
  const { promise, resolve: settle } = Promise.withResolvers<void>()
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => settle())
  return promise
}

/** The prefixed name wins and empty means unset, as in every service's configuration. */
function readSetting(...names: string[]): string | undefined {
  for (const name of names) if (process.env[name]) return process.env[name]
  return undefined
}

function readPort(variable: string, defaultPort: number): number {
  const port = Number(readSetting(variable) ?? defaultPort)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`${variable} is not a port number.`)
  return port
}

function smtpSettings(inbox: Inbox | undefined): Record<string, string> {
  return inbox ? { AUTH_SMTP_HOST: inbox.smtpHost, AUTH_SMTP_PORT: String(inbox.smtpPort) } : {}
}
