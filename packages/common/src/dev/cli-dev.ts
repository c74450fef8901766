// The script `cli:dev`: the command line of the service in whose folder it is called, with the settings of its running
// `dev`.
import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { dataRoot } from './dev-settings.ts'
import { describeElsewhere } from './elsewhere.ts'
import { findRunning } from './running.ts'

/** EX_CONFIG of sysexits.h. */
const NOT_CONFIGURED = 78

const service = basename(process.cwd())
const root = dataRoot(process.env)
const folder = join(root, service)
const settings = join(folder, 'dev.env')
if (existsSync(settings)) {
  if (!(await findRunning(folder))) await say('dev is not running: commands that need its database fail.')
  // The terminal's variables take precedence.
  process.loadEnvFile(settings)
  await import(pathToFileURL(resolve('src/cli.ts')).href)
} else {
  await say(`${settings} is missing: dev has not run here yet.`)
  process.exitCode = NOT_CONFIGURED
}

async function say(what: string): Promise<void> {
  const elsewhere = await describeElsewhere(service, root)
  process.stderr.write(`${what}${elsewhere || ' Start it with: npx -y pnpm@12 dev'}\n`)
}
