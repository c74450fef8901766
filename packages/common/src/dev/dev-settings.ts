import { join, resolve } from 'node:path'

export const REPOSITORY = join(import.meta.dirname, '../../../..')

/** Compile cache, shared with `pnpm start`: compiling takes half of the start. */
export const COMPILE_CACHE = join(REPOSITORY, 'node_modules/.cache/node')

export const PORTS = {
  auth: { variable: 'AUTH_PORT', usual: 8081, meaning: 'auth' },
  media: { variable: 'MEDIA_PORT', usual: 8082, meaning: 'media' },
  inboxWeb: { variable: 'INBOX_WEB_PORT', usual: 8025, meaning: "the inbox's page" },
  inboxSmtp: { variable: 'INBOX_SMTP_PORT', usual: 1025, meaning: "the inbox's mail server" },
}

export function readPort({ variable, usual }: { variable: string; usual: number }, env: NodeJS.ProcessEnv): number {
  const port = Number(env[variable] || usual)
  if (!Number.isInteger(port) || port < 1 || port > 65_535) throw new Error(`${variable} is not a port number.`)
  return port
}

/** Folder of all data kept between two starts. */
export const dataRoot = (env: NodeJS.ProcessEnv, root = REPOSITORY): string =>
  resolve(root, env.DEV_DATA_DIR || '.data')

export const quoted = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`

/** `DEV_DATA_DIR=…` before commands that must find this data; empty for the usual folder. */
export const dataPrefix = (env: NodeJS.ProcessEnv): string =>
  env.DEV_DATA_DIR ? `DEV_DATA_DIR=${quoted(dataRoot(env))} ` : ''

/** Command, at the root of the repository, for a service's command line with the settings of its dev. */
export const commandLineOf = (name: string, env: NodeJS.ProcessEnv): string =>
  `${dataPrefix(env)}npx -y pnpm@12 --silent -C services/${name} cli:dev`

export const wantsHelp = (args: string[]): boolean => args.some((arg) => arg === '--help' || arg === '-h')

export function describeDev(): string {
  const ports = Object.values(PORTS).map(({ variable, usual, meaning }) => row(variable, `${usual}   ${meaning}`))
  return `npx -y pnpm@12 dev starts auth, media, a PostgreSQL for each and a mail inbox; inside services/auth or
services/media only that service. It prints where they are and what to try.
Ctrl-C stops everything; the next start keeps users, clips and mails.

Ports and data, by variables of the environment:
${ports.join('\n')}
${row('DEV_DATA_DIR', '.data  folder of everything that is kept, relative to the repository')}
A second one beside the first has ports of its own, and in the same clone a DEV_DATA_DIR too.

Every setting of a service works as well, there or in services/<name>/.env, for example:
${row('AUTH_LOG_LEVEL=info', 'a log line for each request (media: MEDIA_LOG_LEVEL)')}
${row('AUTH_DATABASE_URL', 'your own PostgreSQL (media: MEDIA_DATABASE_URL)')}
${row('AUTH_SMTP_HOST', 'your own mail server instead of the inbox')}
${row('AUTH_METRICS_ENABLED=true', 'metrics on port 9100 or AUTH_OTEL_EXPORTER_PROMETHEUS_PORT')}
${row('MEDIA_METRICS_ENABLED=true', 'metrics on port 9101 or MEDIA_OTEL_EXPORTER_PROMETHEUS_PORT')}
`
}

const row = (name: string, meaning: string) => `  ${name.padEnd(27)} ${meaning}`
