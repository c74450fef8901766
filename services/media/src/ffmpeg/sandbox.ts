/**
 * What keeps a broken decoder from the rest of the machine: no network, no sight of other processes (the service's
 * environment holds the database's password), no signals to them. Which one works depends on the kernel and on what a
 * container is allowed, so each is tried at start, best first.
 */
export const SANDBOXES = ['bwrap', 'namespaces', 'user namespace'] as const

export interface Sandbox {
  kind: (typeof SANDBOXES)[number]
  /** The program that makes it. */
  path: string
}

export const SANDBOX_PROGRAMS: Record<Sandbox['kind'], string> = {
  bwrap: 'bwrap',
  namespaces: 'unshare',
  'user namespace': 'unshare',
}

/**
 * The words that put the next program into the sandbox. In `bwrap` it can write below the `writable` directories only.
 * The last one is for containers that may not mount /proc: the program then sees other processes, and may not look into
 * them.
 */
export function sandboxArgs({ kind, path }: Sandbox, { cwd, writable }: { cwd: string; writable: string[] }): string[] {
  switch (kind) {
    case 'bwrap':
      return [
        ...[path, '--unshare-all', '--die-with-parent', '--cap-drop', 'ALL', '--ro-bind', '/', '/'],
        ...['--dev', '/dev', '--proc', '/proc'],
        ...writable.flatMap((directory) => ['--bind', directory, directory]),
        ...['--chdir', cwd, '--'],
      ]
    case 'namespaces':
      return [path, '-rn', '--ipc', '--pid', '--fork', '--kill-child', '--mount-proc', '--', ...FIRST_PROCESS]
    case 'user namespace':
      return [path, '-rn', '--ipc', '--']
  }
}

/** The first process of a sandbox is deaf to most signals and its end by one is not told: so a shell is, and tells. */
const FIRST_PROCESS = ['sh', '-c', '"$@"; exit $?', 'sh']
