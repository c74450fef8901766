// Installs missing packages of this clone for the calling script: `dependencies`, and with `--all` also
// `devDependencies` for tests and checks. Every script of a package.json begins with it. It works on any Node from 18
// with nothing installed. pnpm's own check (verifyDepsBeforeRun) would install only the packages of a `--filter`, and
// then treat the rest as installed.
import { spawnSync } from 'node:child_process'
import { existsSync, readFileSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = dirname(fileURLToPath(import.meta.url))
const wantsAll = process.argv.includes('--all')

// A deployment brings its packages; it may be read-only or without a network.
if (process.env.NODE_ENV !== 'production') installUnlessDone()
else if (!existsSync(join(root, 'node_modules')))
  leave('NODE_ENV is production and nothing is installed: run npx -y pnpm@12 install --prod first.', 1)

function installUnlessDone() {
  const installed = readInstalled()
  if (installed?.isCurrent && (installed.hasAll || !wantsAll)) return
  if (!process.env.npm_config_user_agent?.startsWith('pnpm/'))
    leave('Run this script with pnpm: npx -y pnpm@12 <script>', 1)
  // Installed devDependencies stay. A plain `pnpm install` verifies the lockfile against the registry, as CI does. Its
  // 700 requests would double the time and the bytes of a first start.
  const args = ['install', '--trust-lockfile', ...(wantsAll || installed?.hasAll ? [] : ['--prod'])]
  // Standard output belongs to the script, and so does standard input.
  const { status, error } = spawnSync(process.env.npm_execpath, args, { cwd: root, stdio: ['ignore', 2, 2] })
  if (status !== 0) leave(`The packages could not be installed${error ? `: ${error.message}` : ''}.`, status ?? 1)
}

/** Reads pnpm's record of its last installation in this folder. */
function readInstalled() {
  try {
    const note = JSON.parse(readFileSync(join(root, 'node_modules/.pnpm-workspace-state-v1.json'), 'utf8'))
    const projects = Object.keys(note.projects)
    const manifests = projects.map((folder) => join(folder, 'package.json'))
    const files = [join(root, 'pnpm-lock.yaml'), join(root, 'pnpm-workspace.yaml'), ...manifests]
    // A project that was deleted since is a change too.
    const isOlder = (file) =>
      (statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? Infinity) <= note.lastValidatedTimestamp
    return {
      isCurrent: !note.filteredInstall && projects.includes(root) && files.every(isOlder),
      hasAll: note.settings.dev,
    }
  } catch {
    return undefined
  }
}

function leave(because, code) {
  process.stderr.write(`${because}\n`)
  process.exit(code)
}
