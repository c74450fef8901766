import { execFile, execFileSync } from 'node:child_process'
import { stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'

/** System user of PostgreSQL, which refuses to run as root; `undefined` ids mean the current user. */
export type PostgresUser = { uid?: number; gid?: number }

/** Chooses PostgreSQL's user: the current one; for root the data's owner, else `postgres`, else an unprivileged one. */
export async function choosePostgresUser(dataDir: string): Promise<PostgresUser> {
  if (process.getuid?.() !== 0) return {}
  const existing = await stat(dataDir).catch(() => undefined)
  if (existing && existing.uid !== 0) return { uid: existing.uid, gid: existing.gid }
  const user = lookUpUser('postgres') ?? lookUpUser('nobody')
  if (user) return user
  throw new Error('PostgreSQL does not run as root, and this machine has neither a user `postgres` nor `nobody`.')
}

/**
 * Builds the command line that runs `program` as `user`. A checkout under /root is closed to other users; there the
 * child keeps the one capability to pass through (util-linux `setpriv`). Throws a sentence where setpriv is missing or
 * not permitted.
 */
export async function commandAs(
  user: PostgresUser,
  program: string,
  args: string[],
  paths: string[],
): Promise<{ command: string; args: string[]; ids: PostgresUser }> {
  if (user.uid === undefined) return { command: program, args, ids: user }
  const closed = await findClosedFolder(user, [program, ...paths])
  if (closed === undefined) return { command: program, args, ids: user }
  const command = 'setpriv'
  const privileges = privilegesOf(user)
  try {
    await run(command, [...privileges, program, '--version'], { cwd: '/' })
  } catch (error) {
    throw new Error(describeClosedFolder(closed, user, error as Error & { stderr?: string }), { cause: error })
  }
  return { command, args: [...privileges, program, ...args], ids: {} }
}

const run = promisify(execFile)

/** Without `no_setuid_fixup`, access(2), by which initdb checks its rights, ignores capabilities (capabilities(7)). */
function privilegesOf({ uid, gid }: PostgresUser): string[] {
  const capability = '+dac_override'
  return [
    `--reuid=${uid}`,
    `--regid=${gid}`,
    '--clear-groups',
    `--inh-caps=-all,${capability}`,
    `--ambient-caps=-all,${capability}`,
    '--securebits=+no_setuid_fixup',
  ]
}

function describeClosedFolder(folder: string, { uid }: PostgresUser, error: Error & { stderr?: string }): string {
  const why = error.stderr?.trim().split('\n').at(-1) || error.message
  return (
    `PostgreSQL cannot run as root, and its user (${uid}) may not enter ${folder} (${why}). ` +
    `Open it (chmod o+x ${folder}), work elsewhere, or start as an ordinary user.`
  )
}

function lookUpUser(name: string): PostgresUser | undefined {
  try {
    const id = (flag: string) => Number(execFileSync('id', [flag, name], { encoding: 'utf8', stdio: 'pipe' }))
    return { uid: id('-u'), gid: id('-g') }
  } catch {
    return undefined
  }
}

/** Finds the first folder above the paths that the user may not enter. */
async function findClosedFolder(user: PostgresUser, paths: string[]): Promise<string | undefined> {
  const folders = new Set<string>()
  for (const path of paths) {
    for (let folder = dirname(path); ; folder = dirname(folder)) {
      folders.add(folder)
      if (folder === dirname(folder)) break
    }
  }
  for (const folder of folders) {
    const { mode, uid, gid } = await stat(folder)
    const executeBit = uid === user.uid ? 0o100 : gid === user.gid ? 0o010 : 0o001
    if ((mode & executeBit) === 0) return folder
  }
  return undefined
}
