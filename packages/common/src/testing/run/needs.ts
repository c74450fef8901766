// Programs and rights that some tests need. A tag names each, as in `test('…', { tags: 'nginx' }, …)`, and skips the
// test where it is missing. `.ci/install-programs` installs the programs; with CI set a skipped test fails the run
// (run-reporter.ts).
import { spawnSync } from 'node:child_process'
import { accessSync, constants, existsSync } from 'node:fs'
import { delimiter, join } from 'node:path'

/** Folders of server programs, which Debian has only in root's PATH. */
const SYSTEM_FOLDERS = ['/usr/sbin', '/sbin']

/**
 * Browser of the tests: CHROMIUM_PATH, else the headless shell of Debian's Chromium, else Chromium itself. The shell
 * takes 40 % of its processor time.
 */
export const CHROMIUM =
  process.env.CHROMIUM_PATH ||
  (isExecutable('/usr/bin/chromium-headless-shell') ? '/usr/bin/chromium-headless-shell' : '/usr/bin/chromium')

/** Folder of Apache's modules, in Debian. */
export const APACHE_MODULES = '/usr/lib/apache2/modules'

/** Major version of the ffmpeg in PATH (`ffmpeg version 5.1.6-0+deb12u1`, `n7.1`); 0 if it is missing. */
function ffmpegVersion(): number {
  if (!findProgram('ffmpeg')) return 0
  const { stdout } = spawnSync('ffmpeg', ['-version'], { encoding: 'utf8' })
  return Number(/^ffmpeg version n?(\d+)/.exec(stdout)?.[1] ?? 0)
}

/** Minor version of PgBouncer 1; 0 if it is missing. */
function pgbouncerVersion(): number {
  const program = findProgram('pgbouncer')
  if (!program) return 0
  const { stdout } = spawnSync(program, ['--version'], { encoding: 'utf8' })
  return Number(/^PgBouncer 1\.(\d+)/.exec(stdout)?.[1] ?? 0)
}

const has = (program: string) => findProgram(program) !== undefined

const REPOSITORY = join(import.meta.dirname, '../../../../..')

const NEEDS = {
  apache: {
    isMet: has('apache2') && existsSync(join(APACHE_MODULES, 'mod_auth_openidc.so')),
    missing: 'mod_auth_openidc of Apache is missing: apt-get install libapache2-mod-auth-openidc',
  },
  'both-services': {
    isMet: ['auth', 'media'].every((name) => existsSync(join(REPOSITORY, 'services', name))),
    missing: 'one of the services is not in this repository',
  },
  chromium: {
    isMet: has(CHROMIUM),
    missing: 'Chromium is missing: apt-get install chromium-headless-shell, or set CHROMIUM_PATH',
  },
  ffmpeg: { isMet: ffmpegVersion() >= 5, missing: 'ffmpeg 5 or later is missing: apt-get install ffmpeg' },
  helm: {
    isMet: process.platform === 'linux' && process.arch === 'x64',
    missing: 'npm has helm for Linux on x64 only',
  },
  linux: { isMet: process.platform === 'linux', missing: 'this is not Linux' },
  nginx: { isMet: has('nginx'), missing: 'nginx is missing: apt-get install nginx-light' },
  nice: { isMet: has('nice'), missing: 'nice is missing: apt-get install coreutils' },
  openssl: { isMet: has('openssl'), missing: 'openssl is missing: apt-get install openssl' },
  pgbouncer: { isMet: pgbouncerVersion() >= 21, missing: 'PgBouncer 1.21 or later is missing: .ci/install-programs' },
  prlimit: { isMet: has('prlimit'), missing: 'prlimit is missing: apt-get install util-linux' },
  promtool: { isMet: has('promtool'), missing: 'promtool is missing: apt-get install prometheus' },
  root: { isMet: process.getuid?.() === 0, missing: 'only root can do this: run it as root' },
  setpriv: { isMet: has('setpriv'), missing: 'setpriv is missing: apt-get install util-linux' },
}

/** Tags of vitest.config.ts. */
export const NEED_TAGS = Object.entries(NEEDS).map(([name, { isMet, missing }]) => ({
  name,
  description: missing,
  skip: !isMet,
}))

/** Needs that no package meets; only tests that lack one of these may be skipped in CI. */
export const NOT_INSTALLABLE: readonly string[] = ['both-services', 'helm', 'linux', 'root']

/** Finds the absolute path of a program, as a shell does. */
export function findProgram(name: string): string | undefined {
  const folders = name.includes('/') ? [''] : [...(process.env.PATH ?? '').split(delimiter), ...SYSTEM_FOLDERS]
  return folders.map((folder) => join(folder, name)).find(isExecutable)
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}
