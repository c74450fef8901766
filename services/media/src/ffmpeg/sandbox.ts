/**
 * Sandboxes of an exploited decoder: no network, no signals to or view of other processes (the service's environment
 * holds the database's password). Kernel and container decide which work: all are tried at start, best first.
 */
export const SANDBOXES = ['bwrap', 'namespaces', 'user namespace'] as const

export interface Sandbox {
  kind: (typeof SANDBOXES)[number]
  path: string
}

export const SANDBOX_PROGRAMS: Record<Sandbox['kind'], string> = {
  bwrap: 'bwrap',
  namespaces: 'unshare',
  'user namespace': 'unshare',
}

/**
 * The command line that puts the next program into the sandbox. With `bwrap` it can write below `writable` only. The
 * last kind is for containers that may not mount /proc: the program sees other processes but cannot read their memory.
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

/**
 * PID 1 of a namespace ignores most signals, and its death by one is not reported; a shell as PID 1 reports its
 * child's.
 */
const FIRST_PROCESS = ['sh', '-c', '"$@"; exit $?', 'sh']
