import { spawnSync } from 'node:child_process'
import type { Sandbox } from '../src/ffmpeg/sandbox.ts'

/**
 * Checks what this machine has and allows without the code under test. A test that asked that code would skip itself
 * when the code stops finding anything.
 */
const works = (command: string, ...args: string[]): boolean => spawnSync(command, [...args, 'true']).status === 0

export const machine = {
  nice: works('nice', '-n', '10'),
  prlimit: works('prlimit', '--core=0'),
  setpriv: works('setpriv', '--pdeathsig', 'KILL', '--no-new-privs'),
}

const SANDBOXES_OF_MACHINE: Record<Sandbox['kind'], boolean> = {
  bwrap: works('bwrap', '--unshare-all', '--ro-bind', '/', '/', '--dev', '/dev', '--proc', '/proc'),
  namespaces: works('unshare', '-rn', '--ipc', '--pid', '--fork', '--mount-proc'),
  'user namespace': works('unshare', '-rn', '--ipc'),
}

export const allowsSandbox = (kind: Sandbox['kind']): boolean => SANDBOXES_OF_MACHINE[kind]
